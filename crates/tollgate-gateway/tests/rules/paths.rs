//! What the upstream is asked for.

use crate::stage::{Stage, get};

const ROUTES: &str = "
routes:
  - { name: orders, when: { path: \"/orders/**\" }, strip_prefix: /orders, upstream: up }
  - { name: rest, upstream: up }
";

#[test]
fn a_prefix_is_cut_off_where_a_segment_ends() {
    let (stage, _) = Stage::still(ROUTES);
    let asked = [
        ("/orders/7", "/7"),
        ("/orders/7/items?size=3", "/7/items?size=3"),
        ("/orders", "/"),
        ("/orders?size=1", "/?size=1"),
        ("/orders/", "/"),
        ("/orders-old/7", "/orders-old/7"),
        ("/other/orders/7", "/other/orders/7"),
        ("/orders/a%20b%40c?size=1", "/a%20b@c?size=1"),
    ];
    for (sent, seen) in asked {
        assert_eq!(stage.get(sent).status(), 200, "{sent}");
        let asked = stage.up.asked();
        assert_eq!(asked.last().map(|asked| asked.target.as_str()), Some(seen), "{sent}");
    }
}

/// Rules and upstream see the same resource, however it is spelt.
#[test]
fn another_spelling_of_a_path_is_limited_and_forwarded_as_that_path() {
    let rules = "
routes:
  - name: orders
    when: { path: \"/orders/**\" }
    strip_prefix: /orders
    upstream: up
    rules: [ { name: one, limits: [ { fixed_window: { limit: 1, window: 1h }, key: [path] } ] } ]
  - { name: rest, upstream: spare }
";
    let (stage, _) = Stage::still(rules);
    assert_eq!(stage.get("/orders/7").status(), 200);
    for spelling in [
        "/orders/7",
        "/%6frders/7",
        "//orders/7",
        "/orders/./7",
        "/x/../orders/7",
        "/orders/%37",
        "/orders//7",
    ] {
        let seen = stage.get(spelling);
        assert_eq!(seen.status(), 429, "{spelling}: {}", seen.text());
    }
    assert_eq!(stage.get("/x/../orders/8").status(), 200);
    let asked = stage.up.asked();
    assert_eq!(asked.last().map(|asked| asked.target.as_str()), Some("/8"));
    assert_eq!(stage.ask(get("/orders/../private")).text(), "spare\n");
    assert_eq!(stage.spare.asked()[0].target, "/private");
}
