//! What upstream sees of a path.
//!
//! As sent, where that is what the route matched. Where the route matched only after the path was normalised, or where
//! the path has dot segments, upstream gets the normal one: it must not see another resource than the rules did.

use crate::{
    model::{Attribute, Matcher, Route, When},
    program::{Subject, Test},
    reading::{dotted, letters, normal_path},
};
use std::borrow::Cow;

/// The path and query that upstream sees, of those that were sent to a route: its prefix cut off, on the boundary of a
/// segment.
#[must_use]
pub fn rewrite<'a>(route: &Route, path_and_query: &'a str) -> Cow<'a, str> {
    let (path, query) = match path_and_query.find('?') {
        Some(at) => path_and_query.split_at(at),
        None => (path_and_query, ""),
    };
    let prefix = route.strip_prefix.as_deref().map(|prefix| letters(prefix.trim_end_matches('/')));
    let prefix = prefix.as_deref().unwrap_or_default();
    let normal = normal_path(path);
    let as_sent =
        matches!(normal, Cow::Borrowed(_)) || (!dotted(path) && wants(&route.when, path) != Some(false));
    if as_sent {
        match cut(path, prefix) {
            Some("") => return if query.is_empty() { "/".into() } else { format!("/{query}").into() },
            // Two slashes in front would begin a host.
            Some(rest) if prefix.is_empty() || !rest.starts_with("//") => {
                return Cow::Borrowed(&path_and_query[path.len() - rest.len()..]);
            }
            _ if cut(&normal, prefix).is_none() => return Cow::Borrowed(path_and_query),
            _ => {}
        }
    }
    let rest = match cut(&normal, prefix) {
        Some("") => "/",
        Some(rest) => rest,
        None => &normal,
    };
    Cow::Owned(format!("{rest}{query}"))
}

/// What follows the prefix, if that ends where a segment does.
fn cut<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/') || prefix.is_empty())
}

/// Whether a route wants this very path, whatever else it wants; `None` where it wants none in particular.
fn wants(when: &When, path: &str) -> Option<bool> {
    match when {
        When::All(list) => list.iter().filter_map(|when| wants(when, path)).reduce(|all, one| all && one),
        When::Any(list) => list.iter().filter_map(|when| wants(when, path)).reduce(|any, one| any || one),
        When::Is(Attribute::Path, matcher @ (Matcher::Glob(_) | Matcher::Exact(_) | Matcher::Prefix(_))) => {
            Some(Test::new(&Subject::Path, matcher).0.holds(Some(path)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PathPattern, Segment};

    fn route(segments: Vec<Segment>, strip_prefix: Option<&str>) -> Route {
        let pattern = PathPattern { text: String::new(), segments };
        Route {
            name: "orders".to_owned(),
            enabled: true,
            when: When::Is(Attribute::Path, Matcher::Glob(pattern)),
            strip_prefix: strip_prefix.map(str::to_owned),
            upstream: 0,
            rules: Vec::new(),
        }
    }

    #[test]
    fn a_prefix_is_cut_where_a_segment_ends() {
        for prefix in ["/orders", "/orders/", "/%6frders"] {
            let route = route(vec![Segment::Rest], Some(prefix));
            for (sent, seen) in [
                ("/orders/1", "/1"),
                ("/orders/1?a=/orders", "/1?a=/orders"),
                ("/orders", "/"),
                ("/orders?a=b", "/?a=b"),
                ("/orders/", "/"),
                ("/ordersx", "/ordersx"),
                ("/ordersx?a", "/ordersx?a"),
                ("/a/orders/1", "/a/orders/1"),
                ("/orders/a%2fb", "/a%2fb"),
                ("/%6frders/1?q", "/1?q"),
                ("//orders/1", "/1"),
                ("/orders//evil.example/x", "/evil.example/x"),
                ("/orders/../admin", "/admin"),
                ("/orders/%2e%2e/orders/1", "/1"),
                ("*", "*"),
            ] {
                assert_eq!(rewrite(&route, sent), seen, "{sent} without {prefix}");
            }
        }
    }

    #[test]
    fn without_a_prefix_upstream_sees_what_was_sent_if_the_route_matched_that() {
        let orders = route(vec![Segment::Literal("orders".to_owned()), Segment::Rest], None);
        for (sent, seen) in [
            ("/orders/1?x", "/orders/1?x"),
            ("/orders//1", "/orders//1"),
            ("/orders/%41%2f", "/orders/%41%2f"),
            ("/%6frders/1?x", "/orders/1?x"),
            ("//orders/1", "/orders/1"),
            ("/a/../orders/1", "/orders/1"),
            ("/orders/./1", "/orders/1"),
        ] {
            assert_eq!(rewrite(&orders, sent), seen, "{sent}");
        }
    }
}
