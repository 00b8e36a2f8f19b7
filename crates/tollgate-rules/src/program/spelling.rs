//! Rule texts about paths and credentials, spelled as requests' values are.
//!
//! A rule may be written either way, `/@me` or `/%40me`, `bearer ` or `Bearer `. Before a file is compiled its texts are
//! brought into the one spelling that requests are read in, so that matching compares texts as they are. Regular expressions
//! stay as they are written: they see decoded paths.

use crate::{
    model::{Attribute, EncodedSlash, Matcher, RuleFile, Segment, When},
    reading::{credentials, decode_path, decode_rule_text, is_credentials},
};
use std::borrow::Cow;

/// Brings the texts of a file into the spelling of requests.
pub(super) fn spell(file: &mut RuleFile) {
    let slash = file.encoded_slash;
    file.everywhere.iter_mut().for_each(|rule| spell_when(&mut rule.when, slash));
    for route in &mut file.routes {
        spell_when(&mut route.when, slash);
        route.rules.iter_mut().for_each(|rule| spell_when(&mut rule.when, slash));
        if let Some(prefix) = &mut route.strip_prefix {
            *prefix = decode_rule_text(prefix.trim_end_matches('/'), slash).into_owned();
        }
    }
}

fn spell_when(when: &mut When, slash: EncodedSlash) {
    match when {
        When::All(list) | When::Any(list) => list.iter_mut().for_each(|when| spell_when(when, slash)),
        When::Not(inner) => spell_when(inner, slash),
        When::Is(Attribute::Path, matcher) => spell_path(matcher, slash),
        When::Is(Attribute::Capture(_), matcher) => spell_part(matcher, slash),
        When::Is(Attribute::Header(name), Matcher::Exact(text) | Matcher::Prefix(text))
            if is_credentials(name) =>
        {
            *text = credentials(Cow::Borrowed(text)).into_owned();
        }
        When::Is(..) | When::Always | When::Time(_) => {}
    }
}

fn spell_path(matcher: &mut Matcher, slash: EncodedSlash) {
    match matcher {
        // A text that no request can have stays as it is written, and matches none.
        Matcher::Exact(text) => {
            let escaped = decode_rule_text(text, slash);
            let canonical = crate::reading::encode_path(&escaped, slash);
            if let Ok(path) = decode_path(&canonical, slash) {
                *text = path.into_owned();
            }
        }
        Matcher::Glob(pattern) => {
            for segment in &mut pattern.segments {
                if let Segment::Literal(text) | Segment::Wild(text) = segment {
                    *text = decode_rule_text(text, slash).into_owned();
                }
            }
        }
        other => spell_part(other, slash),
    }
}

fn spell_part(matcher: &mut Matcher, slash: EncodedSlash) {
    if let Matcher::Exact(text) | Matcher::Prefix(text) | Matcher::Suffix(text) | Matcher::Contains(text) =
        matcher
    {
        *text = decode_rule_text(text, slash).into_owned();
    }
}
