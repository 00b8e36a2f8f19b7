//! Whose bucket a request is charged to.

use crate::stage::{bucket, done, layer, request, status, store, with_header};
use http::Request;
use std::net::SocketAddr;
use tollgate::{Key, Limit};
use tollgate_tower::{LayerLimit, LimitLayer, Missing, PeerAddr};
use tower::{Layer, service_fn};

fn from(peer: &str, forwarded: &[&str]) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(PeerAddr(SocketAddr::new(peer.parse().unwrap(), 4711)));
    for line in forwarded {
        request.headers_mut().append("x-forwarded-for", line.parse().unwrap());
    }
    request
}

#[tokio::test(start_paused = true)]
async fn every_address_has_its_own_bucket() {
    let service = layer(bucket(1, 1)).by_ip().layer(service_fn(done));
    for (peer, expected) in [
        ("192.0.2.1", 200),
        ("192.0.2.1", 429),
        ("::ffff:192.0.2.1", 429),
        ("192.0.2.2", 200),
        ("2001:db8::1", 200),
        ("2001:db8::2", 429),
        ("2001:db8:0:1::1", 200),
    ] {
        assert_eq!(status(&service, from(peer, &[])).await, expected, "{peer}");
    }
}

/// A client that writes another X-Forwarded-For each time had another bucket each time.
#[tokio::test(start_paused = true)]
async fn spoofed_left_most_forwarded_for() {
    let service = layer(bucket(1, 1)).by_ip().layer(service_fn(done));
    assert_eq!(status(&service, from("192.0.2.1", &["1.1.1.1"])).await, 200);
    assert_eq!(status(&service, from("192.0.2.1", &["2.2.2.2"])).await, 429);

    let proxied = layer(bucket(1, 1)).by_ip().trusted_proxies(["10.0.0.0/8".parse().unwrap()]);
    let service = proxied.layer(service_fn(done));
    assert_eq!(status(&service, from("10.0.0.1", &["1.1.1.1, 203.0.113.7"])).await, 200);
    assert_eq!(status(&service, from("10.0.0.1", &["2.2.2.2", "203.0.113.7"])).await, 429);
    assert_eq!(status(&service, from("10.0.0.1", &["2.2.2.2, 203.0.113.7, 10.0.0.2"])).await, 429);
    assert_eq!(status(&service, from("10.0.0.1", &["203.0.113.8"])).await, 200);
    assert_eq!(status(&service, from("192.0.2.1", &["203.0.113.9"])).await, 200);
    assert_eq!(status(&service, from("192.0.2.1", &["203.0.113.10"])).await, 429, "not a proxy of ours");
}

#[tokio::test(start_paused = true)]
async fn headers_and_extensions_and_closures() {
    #[derive(Clone)]
    struct UserId(u64);
    impl<'k> From<&'k UserId> for Key<'k> {
        fn from(user: &'k UserId) -> Self {
            Key::Number(user.0)
        }
    }
    let user = |id| {
        let mut request = Request::new(());
        request.extensions_mut().insert(UserId(id));
        request
    };
    let service = layer(bucket(1, 1)).by_extension::<UserId>().layer(service_fn(done));
    assert_eq!(status(&service, user(1)).await, 200);
    assert_eq!(status(&service, user(1)).await, 429);
    assert_eq!(status(&service, user(2)).await, 200);

    let service = layer(bucket(1, 1)).by_header("X-API-Key").layer(service_fn(done));
    assert_eq!(status(&service, with_header("x-api-key", "a")).await, 200);
    assert_eq!(status(&service, with_header("x-api-key", "a")).await, 429);
    assert_eq!(status(&service, with_header("x-api-key", "b")).await, 200);

    // Values are a list, and are not joined: ("a", "b c") is not ("a b", "c").
    let pairs = layer(bucket(1, 1)).by(|request| {
        let of = |name| Some(request.headers.get(name)?.to_str().ok()?.to_owned());
        Some([of("x-tenant"), of("x-user")])
    });
    let service = pairs.layer(service_fn(done));
    let pair =
        |tenant, user| Request::builder().header("x-tenant", tenant).header("x-user", user).body(()).unwrap();
    for (tenant, user, expected) in
        [("a", "b c", 200), ("a b", "c", 200), ("a", "b c", 429), ("a", "", 200), ("a", "", 429)]
    {
        assert_eq!(status(&service, pair(tenant, user)).await, expected, "{tenant} {user}");
    }
    assert_eq!(status(&service, with_header("x-tenant", "a")).await, 200, "missing is not empty");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_key() {
    let by_key =
        |missing| layer(bucket(1, 1)).by_header("x-api-key").missing(missing).layer(service_fn(done));
    let share = by_key(Missing::Share);
    assert_eq!(status(&share, request()).await, 200);
    assert_eq!(status(&share, request()).await, 429);
    assert_eq!(status(&share, with_header("x-api-key", "")).await, 200, "empty is not missing");

    let skip = by_key(Missing::Skip);
    for _ in 0..5 {
        assert_eq!(status(&skip, request()).await, 200);
    }
    assert_eq!(status(&skip, with_header("x-api-key", "a")).await, 200);
    assert_eq!(status(&skip, with_header("x-api-key", "a")).await, 429);

    let deny = by_key(Missing::Deny);
    assert_eq!(status(&deny, request()).await, 429);
    assert_eq!(status(&deny, with_header("x-api-key", "a")).await, 200);

    let by_ip = layer(bucket(1, 1)).by_ip().missing(Missing::Deny).layer(service_fn(done));
    assert_eq!(status(&by_ip, request()).await, 429, "no server has told the address");
}

#[tokio::test(start_paused = true)]
async fn several_limits_are_charged_all_or_none() {
    let store = store();
    let tolls = [
        LayerLimit::new("per-key", bucket(1, 3)).by_header("x-api-key").missing(Missing::Skip),
        LayerLimit::new("all", bucket(1, 4)),
    ];
    let layer = LimitLayer::in_store(&store, tolls).unwrap();
    let all = layer.handle(&store, "all").unwrap().clone();
    let left = || store.peek(&[tollgate::Charge::new(&all, ()).cost(0)]).unwrap().statuses()[0].remaining();
    let service = layer.layer(service_fn(done));
    for _ in 0..3 {
        assert_eq!(status(&service, with_header("x-api-key", "a")).await, 200);
    }
    for _ in 0..3 {
        assert_eq!(status(&service, with_header("x-api-key", "a")).await, 429);
    }
    assert_eq!(left(), 1, "a refused request costs nothing anywhere");
    assert_eq!(status(&service, request()).await, 200, "only the limit of all counts it");
    assert_eq!(status(&service, with_header("x-api-key", "b")).await, 429);
}

#[tokio::test(start_paused = true)]
async fn a_request_may_cost_more_than_one() {
    let weighed = layer(bucket(1, 10)).cost_of(|request| request.uri.path().len() as u32);
    let service = weighed.layer(service_fn(done));
    let get = |path| Request::builder().uri(path).body(()).unwrap();
    assert_eq!(status(&service, get("/23456789")).await, 200);
    assert_eq!(status(&service, get("/2")).await, 429);
    assert_eq!(status(&service, get("/")).await, 200);
    let service = layer(bucket(1, 10)).cost(6).layer(service_fn(done));
    assert_eq!(status(&service, request()).await, 200);
    assert_eq!(status(&service, request()).await, 429);
}

#[test]
#[should_panic(expected = "\"no header\" is not a valid header name")]
fn a_name_that_is_none_is_found_when_the_layer_is_made() {
    let limit: Limit = bucket(1, 1).into();
    drop(LimitLayer::new(limit).by_header("no header"));
}
