//! However a path is spelled, it meets the same rules and the same buckets, and the upstream gets one spelling of it.

use crate::build::get;
use proptest::{collection::vec, prelude::*, sample::select};
use tollgate_rules::{Keyed, Program, parse_rules};

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
    let known = select(vec!["users", "@me", "a", "abc"])
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

/// What a strict decoder makes of a path.
fn strictly_decoded(sent: &str) -> String {
    let mut segments: Vec<String> = Vec::new();
    let mut is_open = false;
    for part in sent[1..].split('/') {
        let mut bytes = Vec::new();
        let mut rest = part.as_bytes();
        while let Some((&first, after)) = rest.split_first() {
            let hex = std::str::from_utf8(&after[..after.len().min(2)]).unwrap_or_default();
            match u8::from_str_radix(hex, 16) {
                Ok(byte) if first == b'%' && hex.len() == 2 => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                _ => {
                    bytes.push(first);
                    rest = after;
                }
            }
        }
        let text = String::from_utf8(bytes).expect("made of text");
        is_open = matches!(text.as_str(), "" | "." | "..");
        match text.as_str() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(text),
        }
    }
    let mut path = segments.iter().map(|segment| format!("/{segment}")).collect::<String>();
    if is_open {
        path.push('/');
    }
    path
}

/// What is the same for every spelling: route, rules with their keys, and what the upstream gets.
fn met(program: &Program, path: &str) -> String {
    let sent = get(path);
    let request = sent.request();
    let found = program.find(&request);
    assert_eq!(found.invalid(), None, "{path}");
    let mut met = format!("{:?} {}", found.route(), found.forwarded(&format!("{path}?q=%2F")));
    for entry in found.entries() {
        for charge in entry.charges {
            let Keyed::Key(values) = found.key(charge) else { panic!("every key is there") };
            met.push_str(&format!(" {}={values:?}", entry.rule().name));
        }
    }
    met
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn spellings_of_one_path_meet_the_same_rules_and_buckets(
        segments in vec(segment(), 1..4),
        noise in vec(select(vec!["/", "/", "/", "//", "/./", "/x/../", "/%2e/", "/y/%2E%2e/"]), 5),
        ends_open in any::<bool>(),
    ) {
        let program = Program::new(parse_rules(RULES, |_| None).expect("the rules are good"));
        let end = if ends_open { "/" } else { "" };
        let mut sent = String::new();
        let mut plain = String::new();
        for ((decoded, spelled), noise) in segments.iter().zip(&noise) {
            sent.push_str(noise);
            sent.push_str(spelled);
            // The same path with nothing decoded that need not be, and nothing to resolve.
            plain.push('/');
            for byte in decoded.bytes() {
                plain.push_str(&format!("%{byte:02X}"));
            }
        }
        sent.push_str(end);
        plain.push_str(end);
        prop_assert_eq!(strictly_decoded(&sent), strictly_decoded(&plain));
        prop_assert_eq!(met(&program, &sent), met(&program, &plain));
    }
}

#[test]
fn a_route_is_not_dodged_by_encoding() {
    let program = Program::new(parse_rules(RULES, |_| None).expect("the rules are good"));
    for path in ["/users/@me", "/users/%40me", "//users/%40%6d%65", "/x/..//users/./@me"] {
        assert_eq!(met(&program, path), "Some(RouteId(0)) /users/@me?q=%2F by-path=[Some(\"/users/@me\")]");
    }
    for path in ["/users/bob%40x", "/users/bob@x"] {
        assert!(met(&program, path).ends_with("by-id=[Some(\"bob@x\")]"), "{path}");
    }
    for path in ["/users%2F@me", "/users%5c@me", "/users\\@me", "/users/%", "/users/%00", "/users/%ff"] {
        let sent = get(path);
        assert!(program.find(&sent.request()).invalid().is_some(), "{path}");
    }
}
