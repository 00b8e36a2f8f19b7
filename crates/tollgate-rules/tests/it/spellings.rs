//! However a path is spelled, it meets the same rules and the same buckets, and the upstream gets one spelling of it.

use crate::build::get;
use proptest::{collection::vec, prelude::*, sample::select};
use tollgate_rules::{Keyed, Program, model::EncodedSlash, parse_rules};

const RULES: &str = r#"
version: 1
upstreams: { app: { servers: [ "http://127.0.0.1:9001" ] } }
everywhere:
  - name: by-path
    limits: [ { token_bucket: { rate: 1/s, burst: 1 }, key: [path] } ]
routes:
  - name: me
    when: { path: "/users/@me" }
    upstream: app
  - name: user
    when: { path: "/users/{id}" }
    upstream: app
    rules:
      - name: by-id
        limits: [ { token_bucket: { rate: 1/s, burst: 1 }, key: [path.id] } ]
  - name: wild
    when: { path: "/a*/**" }
    upstream: app
  - name: rest
    upstream: app
"#;

/// A letter of a segment, and whether it may stand in a path as it is.
fn letter() -> impl Strategy<Value = (char, bool)> {
    let plain = "abc@;=:~.-_!$&'()*+,1".chars().map(|letter| (letter, true));
    let encoded = " %|\"<>^`{}?#\u{e9}\u{4e2d}".chars().map(|letter| (letter, false));
    select(plain.chain(encoded).collect::<Vec<_>>())
}

/// A segment and one of its spellings.
fn segment() -> impl Strategy<Value = (String, String)> {
    let known = select(vec!["users", "@me", "a", "abc", ";x"])
        .prop_map(|text| text.chars().map(|letter| (letter, true)).collect::<Vec<_>>());
    let letters = prop_oneof![3 => known, 2 => vec(letter(), 1..5)];
    (letters, vec(any::<(bool, bool)>(), 8)).prop_map(|(letters, how)| {
        let mut sent = String::new();
        for ((letter, plain), (encode, capitals)) in letters.iter().zip(how) {
            if *plain && !encode {
                sent.push(*letter);
                continue;
            }
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                let hex = if capitals { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
                sent.push_str(&hex);
            }
        }
        (letters.into_iter().map(|(letter, _)| letter).collect(), sent)
    })
}

/// What a strict decoder makes of a path: its text, or none where servers read it differently.
fn strictly_decoded(sent: &str, slash: EncodedSlash) -> Option<String> {
    let mut text = Vec::new();
    let mut rest = sent.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after, is_encoded) = match first {
            b'%' => {
                let hex = std::str::from_utf8(after.get(..2)?).ok()?;
                let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
                (is_hex.then(|| u8::from_str_radix(hex, 16).ok())??, &after[2..], true)
            }
            0x80.. => return None,
            byte => (byte, after, false),
        };
        rest = after;
        let is_slash = byte == b'\\' || (byte == b'/' && is_encoded);
        match slash {
            _ if byte.is_ascii_control() => return None,
            EncodedSlash::Reject if is_slash => return None,
            EncodedSlash::Decode if is_slash => text.push(b'/'),
            EncodedSlash::Keep if is_slash || byte == b'%' => text.extend(format!("%{byte:02X}").bytes()),
            _ => text.push(byte),
        }
    }
    let text = String::from_utf8(text).ok()?;
    let mut segments: Vec<&str> = Vec::new();
    let mut is_open = false;
    for part in text[1..].split('/') {
        let kept = slash == EncodedSlash::Keep && (part.contains("%2F") || part.contains("%5C"));
        let uniform = part.replace("%5C", "%2F");
        // Where they are not kept, `%2F` is text that was encoded twice.
        let pieces: Vec<&str> = if kept { uniform.split("%2F").collect() } else { vec![part] };
        let is_dots = |piece: &str| matches!(piece.split(';').next(), Some("." | ".."));
        if pieces.iter().any(|piece| is_dots(piece) && (kept || piece.contains(';'))) {
            return None;
        }
        is_open = matches!(part, "" | "." | "..");
        match part {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(part),
        }
    }
    let path = segments.iter().map(|segment| format!("/{segment}")).collect::<String>();
    Some(if is_open { path + "/" } else { path })
}

/// What is the same for every spelling: the path, route, rules with their keys, and what the upstream gets. None where the
/// request is answered 400.
fn met(program: &Program, path: &str) -> Option<String> {
    let sent = get(path);
    let request = sent.request();
    let found = program.find(&request);
    if found.invalid().is_some() {
        assert_eq!(found.entries().len(), 0, "{path}");
        return None;
    }
    let forwarded = found.forwarded(&format!("{path}?q=%2F")).into_owned();
    let mut met = format!("{} {:?} {forwarded}", found.path(), found.route());
    for entry in found.entries() {
        for charge in entry.charges {
            let Keyed::Key(values) = found.key(charge) else { panic!("every key is there") };
            met.push_str(&format!(" {}={values:?}", entry.rule().name));
        }
    }
    Some(met)
}

fn program(slash: EncodedSlash) -> Program {
    let word = match slash {
        EncodedSlash::Reject => "reject",
        EncodedSlash::Decode => "decode",
        EncodedSlash::Keep => "keep",
    };
    let rules = RULES.replace("version: 1", &format!("version: 1\nencoded_slash: {word}"));
    Program::new(parse_rules(&rules, |_| None).expect("the rules are good"))
}

fn any_slash() -> impl Strategy<Value = EncodedSlash> {
    select(vec![EncodedSlash::Reject, EncodedSlash::Decode, EncodedSlash::Keep])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn spellings_of_one_path_meet_the_same_rules_and_buckets(
        segments in vec(segment(), 1..4),
        noise in vec(select(vec!["/", "/", "/", "//", "/./", "/x/../", "/%2e/", "/y/%2E%2e/"]), 5),
        ends_open in any::<bool>(),
        slash in any_slash(),
    ) {
        let program = program(slash);
        let end = if ends_open { "/" } else { "" };
        let mut sent = String::new();
        let mut plain = String::new();
        for ((decoded, spelled), noise) in segments.iter().zip(&noise) {
            sent.push_str(noise);
            sent.push_str(spelled);
            // The same path with all of it encoded, and nothing to resolve.
            plain.push('/');
            for byte in decoded.bytes() {
                plain.push_str(&format!("%{byte:02X}"));
            }
        }
        sent.push_str(end);
        plain.push_str(end);
        prop_assert_eq!(strictly_decoded(&sent, slash), strictly_decoded(&plain, slash));
        prop_assert_eq!(met(&program, &sent), met(&program, &plain));
    }

    /// Whatever is sent: of what a strict decoder makes the same path, the same is met, and what it refuses is refused.
    #[test]
    fn paths_that_a_strict_decoder_considers_the_same_are_the_same(
        paths in vec(
            "/(/|/|a|%61|users/|%75sers/|@me|%40me|\\.|\\.|%2e|%2F|%2f|%5c|\\\\|%25|2F|%|;|%3b|%c3%a9|%c3|%00|%0a|%7F){0,7}",
            2..24,
        ),
        slash in any_slash(),
    ) {
        let program = program(slash);
        let mut known: Vec<(String, String)> = Vec::new();
        for path in &paths {
            let (decoded, met) = (strictly_decoded(path, slash), met(&program, path));
            prop_assert_eq!(decoded.is_some(), met.is_some(), "{}", path);
            let (Some(decoded), Some(met)) = (decoded, met) else { continue };
            prop_assert!(met.starts_with(&format!("{decoded} ")), "{}: {}", path, met);
            let query = met.find("?q=").expect("a query");
            let forwarded = &met[met[..query].rfind(' ').expect("a blank") + 1..query];
            prop_assert_eq!(strictly_decoded(forwarded, slash), Some(decoded.clone()), "{}", path);
            match known.iter().find(|(other, _)| *other == decoded) {
                Some((_, same)) => prop_assert_eq!(same, &met, "{}", path),
                None => known.push((decoded, met)),
            }
        }
    }
}

#[test]
fn a_route_is_not_dodged_by_encoding() {
    let program = program(EncodedSlash::Reject);
    for path in ["/users/@me", "/users/%40me", "//users/%40%6d%65", "/x/..//users/./@me"] {
        let expected = "/users/@me Some(RouteId(0)) /users/@me?q=%2F by-path=[Some(\"/users/@me\")]";
        assert_eq!(met(&program, path).as_deref(), Some(expected), "{path}");
    }
    for path in ["/users/bob%40x", "/users/bob@x"] {
        assert!(met(&program, path).is_some_and(|met| met.ends_with("by-id=[Some(\"bob@x\")]")), "{path}");
    }
    for path in [
        "/users%2F@me",
        "/users%5c@me",
        "/users\\@me",
        "/users/%",
        "/users/%00",
        "/users/%ff",
        "/users/%0a",
        "/x/..;/users/@me",
    ] {
        assert_eq!(met(&program, path), None, "{path}");
    }
}
