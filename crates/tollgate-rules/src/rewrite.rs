//! The path that the upstream gets: the one that rules saw, without the prefix that the route cuts off, encoded in one
//! canonical way. It never gets the path as it was sent: it must not see another resource than the rules did.

use crate::{model::EncodedSlash, reading::encode_path};
use std::borrow::Cow;

/// The path for the upstream of one that rules saw. The prefix is cut off on the boundary of a segment.
pub(crate) fn forwarded_path<'a>(decoded: &'a str, prefix: &str, slash: EncodedSlash) -> Cow<'a, str> {
    let rest = decoded.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match rest {
        Some("") if !prefix.is_empty() => Cow::Borrowed("/"),
        rest => encode_path(rest.unwrap_or(decoded), slash),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_cut_where_a_segment_ends() {
        for (decoded, forwarded) in [
            ("/orders/1", "/1"),
            ("/orders", "/"),
            ("/orders/", "/"),
            ("/ordersx", "/ordersx"),
            ("/a/orders/1", "/a/orders/1"),
            ("/orders/a b", "/a%20b"),
            ("/orders/100%", "/100%25"),
            ("*", "*"),
        ] {
            assert_eq!(forwarded_path(decoded, "/orders", EncodedSlash::Reject), forwarded, "{decoded}");
        }
        assert_eq!(forwarded_path("/caf\u{e9}", "", EncodedSlash::Reject), "/caf%C3%A9");
    }
}
