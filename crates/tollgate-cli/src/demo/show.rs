//! What is shown while the demo runs: a table on a terminal, or a line a second.

use super::{
    clients::Client,
    plain,
    screen::Screen,
    tally::{Counts, Past},
    traffic::Traffic,
    view::{Bars, ClientRow, KeyRow, Notice, RuleRow, Scene},
};
use crate::serve::Opened;
use anyhow::Result;
use std::{
    env,
    io::{self, Write},
    time::Duration,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tollgate::MemoryStore;
use tollgate_admin::{Heavy, Outcome, Ranking, ReloadFailure};

/// Frames a second.
const FRAMES: u32 = 4;

/// Limited keys that are shown.
const KEYS: usize = 6;

const WHAT_NEXT: &str = "\
tollgate algorithms     compare all algorithms on the same traffic
tollgate serve --help   put a gateway in front of your own service";

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A line a second.
    Plain,
    /// A table that is redrawn.
    Live,
}

impl Form {
    /// What standard output can take.
    pub(super) fn fitting() -> Self {
        if Screen::is_there() { Self::Live } else { Self::Plain }
    }
}

/// Looks at the gateway and its clients, and shows them.
pub(super) struct Show<'a> {
    opened: &'a Opened<MemoryStore>,
    traffic: &'a Traffic,
    addresses: &'a [(&'static str, String)],
    begun: Instant,
    pasts: Vec<Past>,
}

impl<'a> Show<'a> {
    pub(super) fn new(
        opened: &'a Opened<MemoryStore>,
        traffic: &'a Traffic,
        addresses: &'a [(&'static str, String)],
        begun: Instant,
    ) -> Self {
        let pasts = traffic.clients().map(|_| Past::default()).collect();
        Self { opened, traffic, addresses, begun, pasts }
    }

    /// Shows until it is dropped, which gives the terminal back, or until nobody looks any more.
    pub(super) async fn go_on(&mut self, form: Form) -> Result<()> {
        match form {
            Form::Plain => self.plain().await,
            Form::Live => self.live().await,
        }
    }

    async fn plain(&mut self) -> Result<()> {
        let mut output = io::stdout();
        for (client, _) in self.traffic.clients() {
            writeln!(output, "{:<9}{}", client.name, client.habit)?;
        }
        writeln!(output)?;
        for (name, text) in self.addresses {
            writeln!(output, "{name:<9}{text}")?;
        }
        writeln!(output)?;
        let mut seconds = self.ticks(Duration::from_secs(1));
        let mut noticed = None;
        loop {
            seconds.tick().await;
            self.turn();
            let clients = self.traffic.clients().zip(&self.pasts);
            let line =
                plain::line(self.seconds(), clients.map(|((client, _), past)| (client.name, past.now())));
            writeln!(output, "{line}")?;
            let notice = self.notice();
            if notice != noticed {
                writeln!(output, "{}", notice.as_ref().map_or("", Notice::text))?;
                noticed = notice;
            }
        }
    }

    async fn live(&mut self) -> Result<()> {
        let screen = Screen::take()?;
        let bars = bars();
        let mut frames = self.ticks(Duration::from_secs(1) / FRAMES);
        let mut frame = 0;
        loop {
            let size = Screen::size();
            screen.draw(&self.scene().draw(size, bars), size)?;
            frames.tick().await;
            frame += 1;
            if frame % FRAMES == 0 {
                self.turn();
            }
        }
    }

    /// Everything together, to be said at the end.
    pub(super) fn summary(&mut self) -> String {
        self.turn();
        let mut all = Counts::default();
        self.pasts.iter().for_each(|past| all.add(&past.total));
        let Counts { passed, waited, refused, .. } = all;
        let seconds = self.begun.elapsed().as_secs_f64();
        format!("in {seconds:.1} s: allowed {passed}, delayed {waited}, denied {refused}\n\n{WHAT_NEXT}")
    }

    fn ticks(&self, every: Duration) -> tokio::time::Interval {
        let mut ticks = interval_at(self.begun + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks
    }

    fn turn(&mut self) {
        for (past, (_, tally)) in self.pasts.iter_mut().zip(self.traffic.clients()) {
            past.turn(tally);
        }
    }

    fn seconds(&self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    fn scene(&self) -> Scene<'_> {
        let row = |((client, _), past): ((&Client, _), _)| ClientRow {
            name: client.name,
            habit: client.habit,
            past,
        };
        Scene {
            seconds: self.seconds(),
            clients: self.traffic.clients().zip(&self.pasts).map(row).collect(),
            rules: self.opened.rules().into_iter().map(|(route, rule)| self.rule(route, rule)).collect(),
            keys: self.opened.sketch().top(Ranking::Refused, KEYS).iter().map(key).collect(),
            notice: self.notice(),
            addresses: self.addresses,
        }
    }

    fn rule(&self, route: String, rule: String) -> RuleRow {
        let meter = self.opened.meters().rule(&route, &rule);
        let sum = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| meter.total(*outcome)).sum();
        RuleRow {
            passed: sum(&[Outcome::Allow, Outcome::Skip]),
            waited: sum(&[Outcome::Wait]),
            refused: sum(&[Outcome::Reject, Outcome::Divert, Outcome::Degrade, Outcome::Error]),
            shadow: sum(&[Outcome::Shadow]),
            route,
            rule,
        }
    }

    /// What became of the last edit.
    fn notice(&self) -> Option<Notice> {
        let state = self.opened.rules_state();
        match state.failure {
            Some(failure) => Some(Notice::Bad(not_taken(&failure))),
            // The first edition is the demo's own.
            None => (state.generation > 1)
                .then(|| Notice::Good(format!("your change {} is in force", state.generation - 1))),
        }
    }
}

fn not_taken(failure: &ReloadFailure) -> String {
    let Some(first) = failure.mistakes.first() else {
        return format!("your change is not in force: {}", failure.why);
    };
    let more = match failure.mistakes.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("your change is not in force: line {}: {}: {}{more}", first.line, first.path, first.message)
}

/// Whatever a visitor sends as its key, it is shown in plain letters.
fn key(heavy: &Heavy) -> KeyRow {
    let values = heavy.key.values.iter().map(|value| value.as_deref().unwrap_or("(none)"));
    let key = values.collect::<Vec<_>>().join(" ");
    let key = key.chars().map(|mark| if mark == ' ' || mark.is_ascii_graphic() { mark } else { '?' });
    KeyRow { key: key.collect(), limit: heavy.limit.clone(), per_second: heavy.refused_per_second }
}

/// Blocks where the terminal's language has them.
fn bars() -> Bars {
    let language = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        let value = env::var(name).ok()?;
        (!value.is_empty()).then_some(value)
    });
    let language = language.unwrap_or_default().to_ascii_lowercase().replace('-', "");
    if language.contains("utf8") { Bars::BLOCKS } else { Bars::ASCII }
}
