//! What is asked for, as the upstream is to see it.

use http::Uri;
use std::borrow::Cow;

/// The path and query of `uri`, without `prefix` where the path starts with that, segment by segment.
pub(super) fn of<'a>(uri: &'a Uri, prefix: Option<&str>) -> Cow<'a, str> {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let Some(prefix) = prefix else { return Cow::Borrowed(target) };
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    match target.strip_prefix(prefix) {
        Some(rest) if rest.starts_with('/') => Cow::Borrowed(rest),
        Some(rest) if rest.is_empty() || rest.starts_with('?') => Cow::Owned(format!("/{rest}")),
        _ => Cow::Borrowed(target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let check = |uri: &str, prefix: Option<&str>, expected: &str| {
            let uri: Uri = uri.parse().expect("a URI");
            assert_eq!(of(&uri, prefix), expected, "{uri} without {prefix:?}");
        };
        check("/a/b?c", None, "/a/b?c");
        check("/a/b?c", Some("/a"), "/b?c");
        check("/a/b?c", Some("/a/"), "/b?c");
        check("/a", Some("/a"), "/");
        check("/a?q=1", Some("/a"), "/?q=1");
        check("/a/", Some("/a"), "/");
        check("/ab", Some("/a"), "/ab");
        check("/b", Some("/a"), "/b");
        check("/a/b", Some("/"), "/a/b");
        check("http://host/a/b", Some("/a"), "/b");
        check("http://host", None, "/");
        check("*", Some("/a"), "*");
    }
}
