//! A view, drawn: a line about the server, three curves over all, a line a rule, the busiest keys.
//!
//! 80 columns and 24 lines are enough; a wider terminal shows longer names and curves, a higher one more rules. Colours say no
//! more than the words beside them.

use super::{
    told::{Key, Overview, Pace, plain},
    view::View,
};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    symbols::bar,
    text::{Line, Span},
    widgets::{Block, Clear, Paragraph, RenderDirection, Sparkline},
};
use std::time::Duration;

/// Colours, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Colour,
    Plain,
}

/// Lines that the keys get, with their heading.
const KEYS: u16 = 7;
/// The curve of one rule.
const CURVE: usize = 20;
/// Three numbers of a rule.
const NUMBERS: usize = 33;

const HELP: &str = "\
q, Ctrl-C   quit
p, space    pause the picture
s           sort rules by denied, delayed, allowed, name
/           filter rules and keys by a part of their name
Enter       keep the filter               Esc  remove it
up, down    scroll the rules              g    go to the first
?           show this help

Numbers are requests per second, averaged over 5 seconds.
Curves show the last seconds, newest on the right; each has
a scale of its own";

impl Paint {
    fn of(self, colour: Color) -> Style {
        match self {
            Self::Colour => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }
}

impl View {
    pub(super) fn draw(&self, frame: &mut Frame<'_>, url: &str, paint: Paint) {
        let area = frame.area();
        let problems = self.problems();
        let told = u16::try_from(problems.len()).unwrap_or(u16::MAX).min(3);
        let busy = self.told.top.limited.len().max(self.told.top.used.len()) + 1;
        let keys = KEYS.min(u16::try_from(busy).unwrap_or(KEYS));
        let keys = if area.height >= 8 + keys + told { keys } else { 0 };
        let [head, wrong, curves, rules, busiest, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(told),
            Constraint::Length(3),
            Constraint::Fill(1),
            Constraint::Length(keys),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(self.head(url, paint), head);
        let problems: Vec<_> =
            problems.into_iter().map(|it| Line::styled(it, paint.of(Color::Red))).collect();
        frame.render_widget(Paragraph::new(problems), wrong);
        self.curves(frame, curves, paint);
        frame.render_widget(Paragraph::new(self.rules(rules, paint)), rules);
        let [limited, used] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(busiest);
        let refused = |key: &Key| key.refused_per_second;
        self.keys(frame, limited, "limited keys", &self.told.top.limited, refused);
        self.keys(frame, used, "used keys", &self.told.top.used, |key| key.used_per_second);
        frame.render_widget(self.foot(paint), foot);
        if self.is_helping {
            help(frame);
        }
    }

    fn head(&self, url: &str, paint: Paint) -> Paragraph<'static> {
        let Overview { node, version, enabled, ready, rules, store, listeners, .. } = &self.told.overview;
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let up =
            Duration::from_millis(self.told.overview.now_ms.saturating_sub(self.told.overview.started_ms));
        let state = match (ready, enabled) {
            (true, true) => Span::styled("ready", paint.of(Color::Green)),
            (true, false) => Span::styled("switched off: every request is allowed", paint.of(Color::Yellow)),
            (false, _) => Span::styled("not ready", paint.of(Color::Red)),
        };
        let first = Line::from(vec![
            Span::styled(format!("tollgate {} ", plain(version)), bold),
            Span::raw(format!("{}  {url}  up {}  ", plain(node), ago(up))),
            state,
        ]);
        let connections: u64 = listeners.iter().filter_map(|listener| listener.connections).sum();
        let in_flight: u64 = listeners.iter().filter_map(|listener| listener.in_flight).sum();
        let Overview { store: known, .. } = &self.told.overview;
        let mode = match store.mode.as_str() {
            mode @ ("degraded" | "recovering") => Span::styled(plain(mode), paint.of(Color::Red)),
            mode => Span::raw(plain(mode)),
        };
        let second = Line::from(vec![
            Span::raw(format!("rules #{}   store ", rules.generation)),
            mode,
            Span::raw(format!(
                ", {} keys, {} evicted   {connections} connections, {in_flight} in flight",
                known.keys, known.evictions
            )),
        ]);
        Paragraph::new(vec![first, second])
    }

    /// What is not well, a line each.
    fn problems(&self) -> Vec<String> {
        let Overview { rules, store, problems, .. } = &self.told.overview;
        let failure = self.failure.iter().map(|why| why.lines().next().unwrap_or_default().to_owned());
        let kept = rules
            .failure
            .iter()
            .map(|failure| format!("the rules stay as they were: {}", plain(&failure.why)));
        let ill = matches!(store.mode.as_str(), "degraded" | "recovering");
        let store = store.last_error.iter().filter(|_| ill).map(|why| format!("store: {}", plain(why)));
        let known: Vec<String> = failure.chain(kept).chain(store).collect();
        let others = problems.iter().map(|problem| plain(problem));
        let others = others
            .filter(|problem| !known.iter().any(|it| it.contains(problem.as_str())))
            .collect::<Vec<_>>();
        known.into_iter().chain(others).collect()
    }

    fn curves(&self, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
        let total = &self.told.usage.total;
        let Pace { passed, delayed, refused } = total.pace();
        let curves = [
            ("allowed", passed, &total.passed, Color::Green),
            ("delayed", delayed, &total.delayed, Color::Yellow),
            ("denied", refused, &total.refused, Color::Red),
        ];
        for ((name, pace, numbers, colour), area) in curves.into_iter().zip(area.rows()) {
            let [label, curve] =
                Layout::horizontal([Constraint::Length(20), Constraint::Fill(1)]).areas(area);
            let text = format!("{name:<8}{:>9}/s", short(pace));
            frame.render_widget(Line::styled(text, paint.of(colour)), label);
            let newest = numbers.iter().rev().copied().collect::<Vec<_>>();
            let curve_of = Sparkline::default().data(newest).direction(RenderDirection::RightToLeft);
            frame.render_widget(curve_of.bar_set(bar::NINE_LEVELS).style(paint.of(colour)), curve);
        }
    }

    fn rules(&self, area: Rect, paint: Paint) -> Vec<Line<'static>> {
        let width = usize::from(area.width);
        let name = width.saturating_sub(NUMBERS + CURVE + 1).max(10);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (passed, delayed, refused) = ("allowed/s", "delayed/s", "denied/s");
        let heading = format!("{:<name$}{passed:>11}{delayed:>11}{refused:>11} denied", "rule");
        let mut lines = vec![Line::styled(heading, bold)];
        let rows = self.rows();
        if rows.is_empty() {
            let why = if self.filter.is_empty() {
                "no traffic in the last 5 minutes"
            } else {
                "no rule has that in its name"
            };
            lines.push(Line::raw(why));
        }
        for row in rows.into_iter().skip(self.above).take(usize::from(area.height).saturating_sub(1)) {
            let Pace { passed, delayed, refused } = row.pace;
            let numbers = format!(
                "{}{:>11}{:>11}{:>11} ",
                fit(&row.name, name),
                short(passed),
                short(delayed),
                short(refused)
            );
            let style = if refused > 0.0 { paint.of(Color::Red) } else { Style::new() };
            let curve = Span::styled(bars(&row.series.refused, CURVE), paint.of(Color::Red));
            lines.push(Line::from(vec![Span::styled(numbers, style), curve]));
        }
        lines
    }

    fn keys(&self, frame: &mut Frame<'_>, area: Rect, title: &str, keys: &[Key], pace: impl Fn(&Key) -> f64) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let width = usize::from(area.width).saturating_sub(10);
        let mut lines = vec![Line::styled(format!("{}{:>10}", fit(title, width), "a second"), bold)];
        let named = keys.iter().map(|key| (format!("{}  {}", key.name(), plain(&key.limit)), pace(key)));
        let shown = named.filter(|(name, _)| self.shows(name));
        lines
            .extend(shown.map(|(name, pace)| Line::raw(format!("{}{:>10}", fit(&name, width), short(pace)))));
        lines.truncate(usize::from(area.height));
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn foot(&self, paint: Paint) -> Line<'static> {
        let filter = match (self.is_typing, self.filter.as_str()) {
            (true, filter) => format!("filter: {}_", plain(filter)),
            (false, "") => "/ filter".to_owned(),
            (false, filter) => format!("/ filter: {}", plain(filter)),
        };
        let keys = format!("q quit  p pause  s sort: {}  {filter}  ? help", self.order.name());
        match self.is_paused {
            true => Line::from(vec![Span::styled("paused  ", paint.of(Color::Yellow)), Span::raw(keys)]),
            false => Line::raw(keys),
        }
    }
}

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (66.min(area.width), 14.min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" keys ")), place);
}

/// The last numbers as a line of columns, newest on the right.
fn bars(numbers: &[u64], width: usize) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = &numbers[numbers.len().saturating_sub(width)..];
    let most = last.iter().copied().max().unwrap_or(0).max(1);
    last.iter().map(|number| BARS[usize::try_from((number * 8).div_ceil(most)).unwrap_or(8)]).collect()
}

/// A number in a few letters.
fn short(number: f64) -> String {
    match number {
        n if n >= 10_000_000.0 => format!("{:.0}M", n / 1e6),
        n if n >= 10_000.0 => format!("{:.1}k", n / 1e3),
        n if n >= 100.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// Cut or filled up to a width, of which the last column stays free.
fn fit(text: &str, width: usize) -> String {
    let wide = |letter: char| Span::raw(letter.to_string()).width();
    let all: usize = text.chars().map(wide).sum();
    if all < width {
        return format!("{text}{}", " ".repeat(width - all));
    }
    let (mut fitting, mut taken) = (String::new(), 0);
    for letter in text.chars() {
        if taken + wide(letter) + 2 > width {
            break;
        }
        fitting.push(letter);
        taken += wide(letter);
    }
    format!("{fitting}…{}", " ".repeat(width.saturating_sub(taken + 1)))
}

/// A time in its two largest units.
fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{minutes}m"),
        (days, hours, _) => format!("{days}d{hours}h"),
    }
}
