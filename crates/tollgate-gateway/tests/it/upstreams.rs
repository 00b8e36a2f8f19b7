//! Who gets a request, when it is sent again, and what is told when it fails.

use crate::stage::{
    Origin, body, connect, gateway, gateway_with, get, raw, read_head, scripted, settings, status, until,
    upstream,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_gateway::{HealthSettings, ServerSettings, Upstream, UpstreamError, UpstreamSettings};

/// An address where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn servers_get_their_share() {
    let (a, b) = (Origin::start("a").await, Origin::start("b").await);
    let mut servers = vec![ServerSettings::new(a.url()), ServerSettings::new(b.url())];
    servers[1].weight = 3;
    let upstream = Upstream::new(UpstreamSettings::new("test", servers)).expect("good settings");
    let gateway = gateway_with(settings(), upstream);
    for _ in 0..40 {
        assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
    }
    assert_eq!((a.requests.load(SeqCst), b.requests.load(SeqCst)), (10, 30));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_passed_over() {
    let a = Origin::start("a").await;
    let upstream = upstream(&[nobody(), a.url()]);
    let gateway = gateway_with(settings(), upstream.clone());
    for _ in 0..20 {
        assert_eq!(body(&get(gateway.local_addr(), "/").await), "a");
    }
    let states: Vec<_> = upstream.servers().map(|server| server.healthy).collect();
    assert_eq!(states, [false, true]);
}

/// What a client asks for is no reason to think ill of a server.
#[tokio::test]
async fn an_upgrade_that_a_server_does_not_take_is_not_its_failure() {
    let origin = Origin::start("a").await;
    let servers = upstream(&[format!("h2c://{}", origin.address)]);
    let gateway = gateway_with(settings(), servers.clone());
    for _ in 0..5 {
        let answer = raw(
            gateway.local_addr(),
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n",
        )
        .await;
        assert_eq!(status(&answer), 501, "{answer}");
    }
    assert!(servers.servers().all(|server| server.healthy));
    assert_eq!(body(&get(gateway.local_addr(), "/").await), "a");
}

#[tokio::test]
async fn failures_say_which_and_nothing_of_the_inside() {
    let cases: [(&str, u16); 6] = [
        ("", 502),
        ("garbage\r\n\r\n", 502),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 502),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
        ("HTTP/1.1 101 Unasked\r\nUpgrade: x\r\n\r\n", 502),
        ("HTTP/1.1 204 Fine\r\n\r\n", 204),
    ];
    for (answer, expected) in cases {
        let address = scripted(move |mut socket, _| async move {
            read_head(&mut socket).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        })
        .await;
        let gateway = gateway(&[format!("http://{address}")]);
        let told = get(gateway.local_addr(), "/").await;
        assert_eq!(status(&told), expected, "{answer:?}: {told}");
        assert!(!told.contains(&address.port().to_string()), "{told}");
        assert!(expected == 204 || told.contains("application/problem+json"), "{told}");
    }
    let gateway = gateway(&[nobody()]);
    for _ in 0..5 {
        // Set aside, it is still tried: there is no other.
        assert_eq!(status(&get(gateway.local_addr(), "/").await), 502);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let origin = Origin::start("a").await;
    let mut settings_of_upstream = UpstreamSettings::new("test", vec![ServerSettings::new(origin.url())]);
    settings_of_upstream.timeout = Duration::from_millis(200);
    let upstream = Upstream::new(settings_of_upstream).expect("good settings");
    let gateway = gateway_with(settings(), upstream);
    let answer = get(gateway.local_addr(), "/never").await;
    assert_eq!(status(&answer), 504, "{answer}");
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
}

#[tokio::test]
async fn an_answer_that_stops_is_cut_off() {
    let address = scripted(|mut socket, _| async move {
        read_head(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
        let _ = socket.read_u8().await;
    })
    .await;
    let mut of_upstream =
        UpstreamSettings::new("test", vec![ServerSettings::new(format!("http://{address}"))]);
    of_upstream.timeout = Duration::from_millis(200);
    let gateway = gateway_with(settings(), Upstream::new(of_upstream).expect("good settings"));
    let answer = get(gateway.local_addr(), "/").await;
    assert!(answer.ends_with("hello"), "{answer}");
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_costs_no_request() {
    // Answers once a connection and closes it, without having said so.
    let served = Arc::new(AtomicUsize::new(0));
    let counted = served.clone();
    let address = scripted(move |mut socket, _| {
        let counted = counted.clone();
        async move {
            if read_head(&mut socket).await.is_empty() {
                return;
            }
            counted.fetch_add(1, SeqCst);
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    })
    .await;
    let gateway = gateway(&[format!("http://{address}")]);
    for i in 0..20 {
        let answer = raw(
            gateway.local_addr(),
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        )
        .await;
        assert_eq!(status(&answer), 200, "request {i}: {answer}");
        // The end of the connection reaches the gateway before the next request does.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(served.load(SeqCst), 20);
}

#[tokio::test]
async fn what_may_have_been_done_is_never_sent_again() {
    // Takes a request and closes without an answer, on the first connection; would answer on others.
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let address = scripted(move |mut socket, n| {
        let counted = counted.clone();
        async move {
            if n == 0 {
                read_head(&mut socket).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
            read_head(&mut socket).await;
            counted.fetch_add(1, SeqCst);
            if n > 0 {
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    let mut settings = settings();
    settings.workers = 1;
    let gateway = gateway_with(settings, upstream(&[format!("http://{address}")]));
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 502);
    assert_eq!(taken.load(SeqCst), 1, "a request that was read was sent again");
}

#[tokio::test]
async fn checks_take_servers_out_and_bring_them_back() {
    let well = Arc::new(AtomicUsize::new(1));
    let state = well.clone();
    let address = scripted(move |mut socket, _| {
        let state = state.clone();
        async move {
            while !read_head(&mut socket).await.is_empty() {
                let status = if state.load(SeqCst) == 1 { "200 OK" } else { "500 Ill" };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let mut of_upstream =
        UpstreamSettings::new("test", vec![ServerSettings::new(format!("http://{address}"))]);
    of_upstream.health = Some(HealthSettings {
        path: "/ok".to_owned(),
        every: Duration::from_millis(20),
        unhealthy_after: 2,
        healthy_after: 2,
    });
    let upstream = Upstream::new(of_upstream).expect("good settings");
    upstream.start_checks(&tokio::runtime::Handle::current());
    let gateway = gateway_with(settings(), upstream.clone());
    let is_well = || upstream.servers().all(|server| server.healthy);
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
    well.store(0, SeqCst);
    until("it is out", || !is_well()).await;
    let answer = get(gateway.local_addr(), "/").await;
    assert_eq!(status(&answer), 503, "{answer}");
    well.store(1, SeqCst);
    until("it is back", is_well).await;
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
}

#[tokio::test]
async fn an_upstream_is_replaced_under_way() {
    let (a, b) = (Origin::start("a").await, Origin::start("b").await);
    let old = upstream(&[a.url()]);
    let current = Arc::new(Mutex::new(old.clone()));
    let shared = current.clone();
    let handler = move |request: http::Request<tollgate_gateway::RequestBody>,
                        client: tollgate_gateway::ClientInfo| {
        let upstream = shared.lock().expect("not poisoned").clone();
        async move { tollgate_gateway::forward(request, &client, &upstream).await.expect("an answer") }
    };
    let mut settings = settings();
    settings.workers = 1;
    let gateway = crate::stage::serve(settings, handler);
    let mut slow = connect(gateway.local_addr()).await;
    slow.write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha").await.expect("sent");
    read_head(&mut slow).await;
    assert_eq!(body(&get(gateway.local_addr(), "/").await), "a");
    let settings =
        UpstreamSettings::new("test", vec![ServerSettings::new(b.url()), ServerSettings::new(a.url())]);
    let new = Upstream::replace(&old, settings).expect("good settings");
    *current.lock().expect("not poisoned") = new;
    drop(old);
    let opened = a.connections.load(SeqCst);
    let mut seen = HashMap::new();
    for _ in 0..10 {
        *seen.entry(body(&get(gateway.local_addr(), "/").await).to_owned()).or_insert(0) += 1;
    }
    assert_eq!((seen["a"], seen["b"]), (5, 5));
    assert_eq!(a.connections.load(SeqCst), opened, "connections to a server that stayed were not kept");
    slow.write_all(b"ha").await.expect("sent");
    let mut rest = Vec::new();
    while !rest.windows(3).any(|end| end == b"0\r\n") {
        let mut bytes = [0; 100];
        let count = slow.read(&mut bytes).await.expect("the rest");
        assert!(count > 0, "cut off: {rest:?}");
        rest.extend_from_slice(&bytes[..count]);
    }
}

#[test]
fn settings_that_cannot_be_used() {
    let make = |url: &str, weight| {
        let settings = UpstreamSettings::new("x", vec![ServerSettings { url: url.to_owned(), weight }]);
        Upstream::new(settings).map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(make("http://127.0.0.1:1", 1).is_ok());
    assert!(make("127.0.0.1:1", 1).is_err_and(|error| error.contains("has no scheme")));
    assert!(make("http://127.0.0.1:1", 0).is_err_and(|error| error.contains("weight")));
    let none = Upstream::new(UpstreamSettings::new("x", Vec::new()));
    assert!(matches!(none, Err(UpstreamError::NoServers { .. })));
}
