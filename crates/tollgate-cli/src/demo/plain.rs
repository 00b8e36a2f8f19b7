//! A second in a line, for where there is no terminal.

use super::tally::Counts;
use std::fmt::Write as _;

/// `12s  allowed 230  delayed 12  denied 85  (greedy 60 by per-client, guesser 25 by login)`, from what each client met.
pub(super) fn line<'a>(second: u64, clients: impl Iterator<Item = (&'a str, Counts)>) -> String {
    let mut all = Counts::default();
    let mut refused = Vec::new();
    for (name, counts) in clients {
        all.add(&counts);
        if counts.refused > 0 {
            refused.push((name, counts));
        }
    }
    let mut line =
        format!("{second}s  allowed {}  delayed {}  denied {}", all.passed, all.waited, all.refused);
    if all.failed > 0 {
        let _ = write!(line, "  failed {}", all.failed);
    }
    refused.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.refused));
    let of_client = refused.iter().map(|(name, counts)| match counts.refuser() {
        Some(rule) => format!("{name} {} by {rule}", counts.refused),
        None => format!("{name} {}", counts.refused),
    });
    let told = of_client.collect::<Vec<_>>().join(", ");
    if !told.is_empty() {
        let _ = write!(line, "  ({told})");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_to_the_letter() {
        let refused = |refused, by: &str| Counts {
            refused,
            by: [(by.to_owned(), refused)].into(),
            ..Counts::default()
        };
        let clients = [
            ("steady", Counts { passed: 15, waited: 2, ..Counts::default() }),
            ("guesser", refused(25, "login")),
            ("greedy", Counts { passed: 20, ..refused(60, "per-client") }),
        ];
        assert_eq!(
            line(12, clients.into_iter()),
            "12s  allowed 35  delayed 2  denied 85  (greedy 60 by per-client, guesser 25 by login)"
        );
        let broken = [("steady", Counts { failed: 3, ..Counts::default() })];
        assert_eq!(line(1, broken.into_iter()), "1s  allowed 0  delayed 0  denied 0  failed 3");
    }
}
