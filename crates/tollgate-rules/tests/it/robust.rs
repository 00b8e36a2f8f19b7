//! No text makes it panic, hang, or take memory without bound.

use crate::{
    example::{EXAMPLE, environment},
    yaml::scalars,
};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::{ops::Range, sync::LazyLock};
use tollgate_rules::parse_rules;

static SCALARS: LazyLock<Vec<Range<usize>>> = LazyLock::new(|| scalars(EXAMPLE));

fn told(text: &str) -> String {
    parse_rules(text, |_| None).map(|_| ()).unwrap_err().to_string()
}

/// The nearest place where a letter begins.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[test]
fn what_grows_without_bound_is_refused() {
    let laughs: String =
        (1..30).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}]\n", level - 1)).collect();
    let laughs = format!("version: 1\na0: &a0 [ha]\n{laughs}");
    let merged = "version: 1\nx: &x { rate: 1/s }\nlimits: { a: { token_bucket: { <<: *x, burst: 1 } } }";
    let nested = format!("version: 1\neverywhere: [{{ when: {}", "{ not: ".repeat(100_000));
    let told = [laughs.as_str(), merged, &nested, "version: !!int 1"].map(told);
    assert_snapshot!(told.join("\n"), @r#"
    3:10: is not supported: write the value out instead of an alias (`*name`)
    3:36: is not supported: write the value out instead of an alias (`*name`)
    2:1793: is not YAML: recursion limit exceeded
    1:10: must not carry a tag such as `!!int`
    "#);
}

#[test]
fn conditions_may_nest_as_deep_as_yaml_may() {
    let limit = "limits: [{ token_bucket: { rate: 1/s, burst: 1 }, key: [] }]";
    let text = |depth: usize| {
        format!(
            "version: 1\neverywhere: [{{ name: a, {limit}, when: {}{{ method: GET }}{} }}]",
            "{ not: ".repeat(depth),
            " }".repeat(depth)
        )
    };
    assert!(parse_rules(&text(55), |_| None).is_ok());
    assert!(parse_rules(&text(65), |_| None).is_err());
}

/// Twenty thousand of anything takes no longer than reading it.
#[test]
fn many_entries_are_not_compared_with_each_other() {
    let many = |entry: &dyn Fn(usize) -> String| (0..20_000).map(entry).collect::<String>();
    let overrides = many(&|index| format!("      key-{index}: {{ burst: {} }}\n", index + 1));
    let limits = many(&|index| format!("  limit-{index}: {{ sliding_log: {{ limit: 1, window: 1s }} }}\n"));
    let text = format!(
        "version: 1\nlimits:\n  a:\n    token_bucket: {{ rate: 1/s, burst: 1 }}\n    overrides:\n{overrides}{limits}"
    );
    let file = parse_rules(&text, |_| None).unwrap();
    assert_eq!((file.limits.len(), file.limits[0].overrides.len()), (20_001, 20_000));
    let unknown = many(&|index| format!("unknown-{index}: 1\n"));
    let mistakes = parse_rules(&format!("version: 1\n{unknown}"), |_| None).unwrap_err();
    assert_eq!(mistakes.iter().count(), 20_000);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}") {
        let _ = parse_rules(&text, environment);
        let _ = parse_rules(&format!("version: 1\n{text}"), environment);
    }

    #[test]
    fn no_damage_makes_it_panic(
        damages in proptest::collection::vec((any::<prop::sample::Index>(), 0..30_usize, "([-?:,\\[\\]{}#&*!|>'\"%@`~$ \t\r\n]|[a-c0-9]|---|: |- |\n  |\\$\\{A\\}){0,6}"), 1..5)
    ) {
        let mut text = EXAMPLE.to_owned();
        for (at, length, put) in damages {
            let start = boundary(&text, at.index(text.len() + 1));
            let end = boundary(&text, start + length).max(start);
            text.replace_range(start..end, &put);
        }
        let _ = parse_rules(&text, environment);
    }

    #[test]
    fn no_value_makes_it_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            "\"\\PC{0,20}\"",
            "[-+.0-9a-zA-Z/:]{0,12}",
            "\\[\\]|\\{\\}|~|''|/|/\\*\\*|\\{ \\}|\\[\\[a\\]\\]|\"\\$\\{VIP_KEY\\}\"|\"\\(\\?x\\)\"|2026-11-15|23:59|ip/32|path\\.tenant",
        ]), 1..6)
    ) {
        let mut text = EXAMPLE.to_owned();
        let mut changes: Vec<_> = changes.iter().map(|(at, put)| (at.get(&SCALARS[..]).clone(), put)).collect();
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        changes.dedup_by_key(|(place, _)| place.start);
        for (place, put) in changes {
            text.replace_range(place, put);
        }
        let read = parse_rules(&text, environment);
        if let Ok(file) = read {
            let _ = file.warnings();
        }
    }
}
