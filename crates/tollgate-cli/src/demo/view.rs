//! The live view as lines: clients, rules and limited keys, where to look further.
//!
//! 80 columns and 24 lines are enough; a wider terminal shows more of each, and of a lower one the tables in the middle are
//! cut first. Nothing here writes.

use super::{
    line::{Line, Paint},
    screen::Size,
    tally::{Counts, Past},
};

/// All that is shown.
pub(super) struct Scene<'a> {
    pub(super) seconds: u64,
    pub(super) clients: Vec<ClientRow<'a>>,
    pub(super) rules: Vec<RuleRow>,
    pub(super) keys: Vec<KeyRow>,
    /// What is to be said of the rule file.
    pub(super) notice: Option<Notice>,
    pub(super) addresses: &'a [(&'static str, String)],
}

pub(super) struct ClientRow<'a> {
    pub(super) name: &'static str,
    pub(super) habit: &'static str,
    pub(super) past: &'a Past,
}

pub(super) struct RuleRow {
    pub(super) route: String,
    pub(super) rule: String,
    pub(super) passed: u64,
    pub(super) waited: u64,
    pub(super) refused: u64,
    pub(super) shadow: u64,
}

/// A key, and how often it was refused of late.
pub(super) struct KeyRow {
    pub(super) key: String,
    pub(super) limit: String,
    pub(super) per_second: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Good(String),
    Bad(String),
}

/// The height of a column that shows one second, from nothing to most.
#[derive(Clone, Copy)]
pub(super) struct Bars([char; 9]);

impl Bars {
    pub(super) const BLOCKS: Self = Self([' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']);
    pub(super) const ASCII: Self = Self([' ', '.', ':', '-', '=', '+', '*', '#', '@']);
}

/// Where a client's columns end and what is said of it begins.
const SAID: usize = 58;
/// Where its habit stands, where there is room.
const HABIT: usize = SAID + 25;
/// A terminal with room for habits.
const ROOMY: usize = HABIT + 36;
/// The table of rules.
const RULES: usize = 55;

impl Scene<'_> {
    pub(super) fn draw(&self, size: Size, bars: Bars) -> Vec<Line> {
        let mut foot: Vec<Line> = self.notice.iter().map(Notice::line).collect();
        foot.extend(
            self.addresses.iter().map(|(name, text)| {
                Line::of(Paint::Dim, format!("{name:<9}")).and(Paint::Plain, text.as_str())
            }),
        );
        let sections = [vec![self.title()], self.clients(size.width, bars), self.tables(), foot];
        fit(sections, size.height)
    }

    fn title(&self) -> Line {
        let mut all = Counts::default();
        self.clients.iter().for_each(|client| all.add(&client.past.now()));
        Line::of(Paint::Bold, "tollgate demo")
            .and(Paint::Plain, format!("{:>5} s  a second: ", self.seconds))
            .and(Paint::Green, format!("{} allowed", all.passed))
            .and(Paint::Plain, "  ")
            .and(Paint::Yellow, format!("{} delayed", all.waited))
            .and(Paint::Plain, "  ")
            .and(Paint::Red, format!("{} denied", all.refused))
            .and(Paint::Dim, "  Ctrl-C ends")
    }

    fn clients(&self, width: usize, bars: Bars) -> Vec<Line> {
        let header = format!(
            "{:<10}{:>8}{:>8}{:>7}   last {} s",
            "client",
            "allowed",
            "delayed",
            "denied",
            Past::KEPT
        );
        let mut lines = vec![Line::of(Paint::Dim, header)];
        lines.extend(self.clients.iter().map(|client| {
            let line = client.line(bars);
            match width {
                ROOMY.. => line.padded(HABIT).and(Paint::Dim, client.habit),
                _ => line,
            }
        }));
        lines
    }

    /// Rules on the left, keys on the right.
    fn tables(&self) -> Vec<Line> {
        let left = format!(
            "{:<9}{:<13}{:>8}{:>8}{:>7}{:>7}",
            "route", "rule", "allowed", "delayed", "denied", "shadow"
        );
        let right = format!("{:<16}{:>8}   {}", "limited key", "a second", "limit");
        let mut lines = vec![Line::of(Paint::Dim, left).padded(RULES).and(Paint::Dim, right)];
        for row in 0..self.rules.len().max(self.keys.len()) {
            let rule = self.rules.get(row).map(RuleRow::line).unwrap_or_default();
            let key = self.keys.get(row).map(KeyRow::line).unwrap_or_default();
            lines.push(rule.padded(RULES).then(key));
        }
        lines
    }
}

impl ClientRow<'_> {
    fn line(&self, bars: Bars) -> Line {
        let now = self.past.now();
        let line = Line::of(Paint::Bold, format!("{:<10}", self.name))
            .then(number(Paint::Green, now.passed, 8))
            .then(number(Paint::Yellow, now.waited, 8))
            .then(number(Paint::Red, now.refused, 7))
            .and(Paint::Plain, "   ")
            .then(history(self.past, bars))
            .padded(SAID);
        match self.said(&now) {
            Some((paint, said)) => line.and(paint, said),
            None => line,
        }
    }

    fn said(&self, now: &Counts) -> Option<(Paint, String)> {
        // A refuser of the last seconds stays named while its client rests.
        let latest = self.past.seconds.iter().rev().take(5).find_map(Counts::refuser);
        if now.failed > 0 {
            return Some((Paint::Red, format!("{} failed", now.failed)));
        }
        if let Some(rule) = latest {
            return Some((Paint::Red, format!("denied by {rule}")));
        }
        // Bytes are of interest where requests are few and large.
        let kib = now.bytes / 1024;
        (kib > 16 * now.requests()).then(|| (Paint::Green, format!("{kib} KiB a second")))
    }
}

impl RuleRow {
    fn line(&self) -> Line {
        let Self { route, rule, .. } = self;
        Line::of(Paint::Plain, format!("{:<9}{:<13}", cut(route, 8), cut(rule, 12)))
            .then(number(Paint::Green, self.passed, 8))
            .then(number(Paint::Yellow, self.waited, 8))
            .then(number(Paint::Red, self.refused, 7))
            .then(number(Paint::Yellow, self.shadow, 7))
    }
}

impl KeyRow {
    fn line(&self) -> Line {
        let key = cut(&self.key, 15);
        Line::of(Paint::Plain, format!("{key:<16}"))
            .and(Paint::Red, format!("{:>8.1}", self.per_second))
            .and(Paint::Dim, format!("   {}", self.limit))
    }
}

impl Notice {
    fn line(&self) -> Line {
        let (paint, text) = match self {
            Self::Good(text) => (Paint::Green, text),
            Self::Bad(text) => (Paint::Red, text),
        };
        Line::of(paint, text.as_str())
    }

    pub(super) fn text(&self) -> &str {
        let (Self::Good(text) | Self::Bad(text)) = self;
        text
    }
}

/// A column for each second, as high as there were requests, in the colour of what became of most of them.
fn history(past: &Past, bars: Bars) -> Line {
    let most = past.seconds.iter().map(Counts::requests).max().unwrap_or(0).max(1);
    let top = bars.0.len() as u64 - 1;
    let mut line = Line::of(Paint::Plain, " ".repeat(Past::KEPT - past.seconds.len()));
    for second in &past.seconds {
        let paint = if second.failed > 0 || second.refused * 2 > second.requests() {
            Paint::Red
        } else if second.refused + second.waited > 0 {
            Paint::Yellow
        } else {
            Paint::Green
        };
        let height = (second.requests() * top).div_ceil(most).min(top);
        line = line.and(paint, bars.0[height as usize].to_string());
    }
    line
}

/// Right-aligned; nothing to see where there is none.
fn number(paint: Paint, number: u64, width: usize) -> Line {
    let paint = if number == 0 { Paint::Dim } else { paint };
    Line::of(paint, format!("{number:>width$}"))
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// Puts sections under each other: with blank lines between them where there is room, and with less of the third where
/// there is too little.
fn fit(mut sections: [Vec<Line>; 4], height: usize) -> Vec<Line> {
    let lines: usize = sections.iter().map(Vec::len).sum();
    let roomy = lines + sections.len() - 1 <= height;
    let keep = sections[2].len().saturating_sub(lines.saturating_sub(height));
    // A heading alone says nothing.
    sections[2].truncate(if keep > 1 { keep } else { 0 });
    let mut fitted = Vec::new();
    for (place, section) in sections.into_iter().enumerate() {
        if roomy && place > 0 {
            fitted.push(Line::new());
        }
        fitted.extend(section);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::line::Colour;

    fn check(size: Size, look: impl FnOnce(&str)) {
        let (mut steady, mut greedy) = (Past::default(), Past::default());
        for second in 1..=4 {
            steady.push(Counts { passed: 15, waited: second / 4, ..Counts::default() });
            let by = [("per-client".to_owned(), 60)].into();
            greedy.push(Counts { passed: 20 * second, refused: 60, by, ..Counts::default() });
        }
        let rule = |rule: &str, refused| RuleRow {
            route: "orders".to_owned(),
            rule: rule.to_owned(),
            passed: 1234,
            waited: 5,
            refused,
            shadow: 0,
        };
        let key =
            |key: &str| KeyRow { key: key.to_owned(), limit: "per-client".to_owned(), per_second: 59.94 };
        let scene = Scene {
            seconds: 4,
            clients: vec![
                ClientRow { name: "steady", habit: "15 a second", past: &steady },
                ClientRow { name: "greedy", habit: "80 a second", past: &greedy },
            ],
            rules: vec![rule("per-client", 240), rule("a-rule-with-a-long-name", 0)],
            keys: vec![key("greedy"), key("you\x1b[2J"), key("somebody else")],
            notice: Some(Notice::Good("your change 1 is in force".to_owned())),
            addresses: &[("gateway", "http://127.0.0.1:8080".to_owned())],
        };
        let lines = scene.draw(size, Bars::ASCII);
        assert!(lines.len() <= size.height);
        let text: Vec<_> = lines.iter().map(|line| line.written(size.width - 1, Colour::None)).collect();
        assert!(text.iter().all(|line| line.chars().count() < size.width), "{text:#?}");
        look(&text.join("\n"));
    }

    #[test]
    fn on_a_common_terminal() {
        check(Size { width: 80, height: 24 }, |text| {
            insta::assert_snapshot!(text, @r"
            tollgate demo    4 s  a second: 95 allowed  1 delayed  60 denied  Ctrl-C ends

            client     allowed delayed denied   last 20 s
            steady          15       1      0                   @@@@
            greedy          80       0     60                   +*#@  denied by per-client

            route    rule          allowed delayed denied shadow   limited key     a second
            orders   per-client       1234       5    240      0   greedy              59.9
            orders   a-rule-with-     1234       5      0      0   you?[2J             59.9
                                                                   somebody else       59.9

            your change 1 is in force
            gateway  http://127.0.0.1:8080
            ");
        });
    }

    #[test]
    fn on_a_wide_one() {
        check(Size { width: 140, height: 50 }, |text| {
            insta::assert_snapshot!(text, @r"
            tollgate demo    4 s  a second: 95 allowed  1 delayed  60 denied  Ctrl-C ends

            client     allowed delayed denied   last 20 s
            steady          15       1      0                   @@@@                           15 a second
            greedy          80       0     60                   +*#@  denied by per-client     80 a second

            route    rule          allowed delayed denied shadow   limited key     a second   limit
            orders   per-client       1234       5    240      0   greedy              59.9   per-client
            orders   a-rule-with-     1234       5      0      0   you?[2J             59.9   per-client
                                                                   somebody else       59.9   per-client

            your change 1 is in force
            gateway  http://127.0.0.1:8080
            ");
        });
    }

    #[test]
    fn on_a_small_one_the_tables_go_first() {
        check(Size { width: 40, height: 7 }, |text| {
            insta::assert_snapshot!(text, @r"
            tollgate demo    4 s  a second: 95 allo
            client     allowed delayed denied   las
            steady          15       1      0
            greedy          80       0     60
            your change 1 is in force
            gateway  http://127.0.0.1:8080
            ");
        });
    }

    #[test]
    fn paint_is_never_cut_off_half() {
        let line = Line::of(Paint::Red, "refused").and(Paint::Plain, " by ").and(Paint::Green, "nobody");
        assert_eq!(line.written(3, Colour::Ansi), "\x1b[31mref\x1b[0m");
        assert_eq!(line.written(80, Colour::None), "refused by nobody");
    }
}
