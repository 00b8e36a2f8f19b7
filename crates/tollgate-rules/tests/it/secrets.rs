//! What comes from the environment is text, and stays secret.

use crate::{
    example::{EXAMPLE, environment},
    yaml::scalars,
};
use insta::assert_snapshot;
use tollgate_rules::parse_rules;

/// What is wrong where every `${SECRET}` is `secret`.
fn told(text: &str, secret: &str) -> Option<String> {
    let environment = |name: &str| if name == "SECRET" { Some(secret.to_owned()) } else { environment(name) };
    parse_rules(text, environment).err().map(|mistakes| mistakes.to_string())
}

/// Every scalar of the example is taken from the environment in turn, alone and beside others that are wrong.
#[test]
fn no_message_holds_what_the_environment_gave() {
    // The parts that a message might cut out and show are all told apart by `zq`.
    let secrets =
        ["zq1/zq2", "zq1://zq2:zq3@zq4/zq5", "zq1.zq2", "/zq1/{zq2", "(zq1", "\u{7}zq1", "zq1: [zq2]"];
    let places = scalars(EXAMPLE);
    assert!(places.len() > 250);
    let mut wrong = 0;
    for (index, place) in places.into_iter().enumerate() {
        let text = format!("{}\"${{SECRET}}\"{}", &EXAMPLE[..place.start], &EXAMPLE[place.end..]);
        let numbers_that_clash = text.replace("burst: 100 ", "burst: 100, initial: 9000000 ");
        let [first, second] = [index, index + 3].map(|index| secrets[index % secrets.len()]);
        for (text, secret) in [(&text, first), (&text, second), (&numbers_that_clash, "7391000")] {
            let Some(told) = told(text, secret) else { continue };
            assert!(!told.contains("zq") && !told.contains("7391"), "{told}");
            wrong += 1;
        }
    }
    assert!(wrong > 500, "{wrong}");
}

#[test]
fn what_is_told_instead() {
    let texts = [
        "version: 1\nenabled: \"${SECRET}\"",
        "version: 1\nstore: { timeout: \"${SECRET}\", url: \"${SECRET}\", nodes: \"${GONE}\" }",
        "version: 1\nlimits: { a: { token_bucket: { rate: 1/s, burst: \"${SECRET}\", initial: 5000000 } } }",
        "version: 1\nlimits: { \"${SECRET}\": { sliding_log: { limit: 1, window: 1s } } }",
        "version: 1\n${SECRET}: 1",
        "version: 1\neverywhere: [{ name: a, limits: [{ use: \"x-${SECRET}\", key: [\"${SECRET}\"] }] }]",
        "version: 1\nlimits: { a: { token_bucket: { rate: 1/s, burst: 1 }, overrides: { \"${SECRET}\": { burst: 0 } } } }",
        "version: 1\nrefusal: ${\nheaders: $${SECRET}\nlog: ${SECRET}",
    ];
    let told: Vec<_> = texts.iter().map(|text| told(text, "1000").unwrap()).collect();
    assert_snapshot!(told.join("\n"), @r#"
    2:10: enabled: must be `true` or `false`; what the environment has for `${SECRET}` is not, and is not shown
    2:19: store.timeout: must be a duration such as 30s; what the environment has for `${SECRET}` is not, and is not shown
    2:37: store.url: must be `memory:`, or begin with `redis://`, `rediss://`, `redis-cluster://`, `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`; it is not shown, because it can contain a password
    2:57: store.nodes: `GONE` is not set in the environment
    2:72: limits.a.token_bucket.initial: does not fit the values beside it; some come from the environment, and are not shown
    2:11: limits.${SECRET}: cannot come from the environment, because names are shown in logs and on pages
    2:1: ${SECRET}: cannot come from the environment: write the key out
    2:41: everywhere[0].limits[0].use: is not what is wanted here; it comes from the environment as `x-${SECRET}`, and is not shown
    2:62: everywhere[0].limits[0].key[0]: must be an attribute such as ip or header.x-api-key; what the environment has for `${SECRET}` is not, and is not shown
    2:90: limits.a.overrides.${SECRET}.burst: must be greater than zero; read "0", expected a whole number such as 100
    2:10: refusal: has a `${` without its `}`; write `$${` for the signs themselves
    3:10: headers: must be one of `draft-10`, `x-ratelimit`, `none`; read "${SECRET}"
    4:6: log: must be a mapping such as `{ level: info }`; read a value from the environment
    "#);
}

#[test]
fn values_are_text_whatever_they_look_like() {
    let text = "version: 1\n\
                limits: { a: { token_bucket: { rate: 1/s, burst: \"${COUNT}\" }, overrides: { \"${ODD}\": { burst: 3 } } } }\n\
                upstreams: { u: { servers: [\"http://${HOST}:80\"] } }\n\
                routes:\n  - name: r\n    upstream: u\n    when: { header.a: \"${ODD}\", header.b: \"$${ODD}\", header.c: \"${EMPTY}\" }\n";
    let file = parse_rules(text, |name| match name {
        "COUNT" => Some("7".to_owned()),
        "ODD" => Some("] }\n${COUNT} # *a".to_owned()),
        "HOST" => Some("orders".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    })
    .unwrap();
    assert_eq!(file.limits[0].limit.most(), 7);
    assert_eq!(file.limits[0].overrides[0].key, ["] }\n${COUNT} # *a"]);
    assert_eq!(file.upstreams[0].servers[0].url, "http://orders:80");
    let when = format!("{:?}", file.routes[0].when);
    assert!(when.contains(r##"Exact("] }\n${COUNT} # *a")"##), "{when}");
    assert!(when.contains(r#"Exact("${ODD}")"#) && when.contains(r#"Exact("")"#), "{when}");
}

#[test]
fn what_is_wrong_with_telemetry() {
    let texts = [
        "version: 1\ntelemetry: {}",
        "version: 1\ntelemetry: { otlp: \"127.0.0.1:4318\", sample: 1.5, service: \"\" }",
        "version: 1\ntelemetry: { otlp: \"http://me:zq@127.0.0.1\", parents: obey, sample: often }",
        "version: 1\ntelemetry: { otlp: \"http://127.0.0.1/zq?key=zq\" }",
        "version: 1\ntelemetry: { otlp: \"https://:4318\", headers: { \"a b\": c, \"${SECRET}\": c, d: \"e\\u0007\" } }",
    ];
    let told: Vec<_> = texts.iter().map(|text| told(text, "zq").unwrap()).collect();
    assert_snapshot!(told.join("\n"), @r#"
    2:12: telemetry.otlp: is missing, such as `otlp: "http://127.0.0.1:4318"`
    2:20: telemetry.otlp: must begin with `http://` or `https://`, such as http://127.0.0.1:4318
    2:46: telemetry.sample: must be from 0 (none) to 1 (all), such as 0.01
    2:60: telemetry.service: must not be empty
    2:20: telemetry.otlp: must not contain a user name or password; set `authorization` in `headers`
    2:55: telemetry.parents: must be one of `follow`, `ignore`; read "obey"
    2:69: telemetry.sample: must be a number such as 3 or 2.5; read "often"
    2:20: telemetry.otlp: must have a host and a path, and nothing after them
    2:20: telemetry.otlp: must have a host of letters, digits, `.`, `-` and `_` after the `://`
    2:48: telemetry.headers.a b: must be the name of a header
    2:58: telemetry.headers.${SECRET}: cannot come from the environment: write the key out
    2:77: telemetry.headers.d: must be the value of a header: visible characters on one line
    "#);
}

#[test]
fn a_store_does_not_print_its_password() {
    let file = parse_rules(EXAMPLE, environment).unwrap();
    assert!(!format!("{file:?}").contains("s3cret"));
}
