//! Who gets a request, when it is sent again, and what is told when it fails.

use crate::stage::{
    Origin, Server, body, connect, gateway, gateway_with, get, raw, read_head, scripted, settings, status,
    until, upstream, upstream_settings,
};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_gateway::{Upstream, UpstreamError};
use tollgate_rules::model::HealthCheck;

/// An address where nobody listens.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn servers_get_their_share() {
    let (a, b) = (Origin::start("a").await, Origin::start("b").await);
    let mut settings_of_both = upstream_settings(&[a.url(), b.url()]);
    settings_of_both.servers[1].weight = 3;
    let upstream = Upstream::new(settings_of_both).expect("good settings");
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
    let mut settings_of_upstream = upstream_settings(&[origin.url()]);
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
    let mut of_upstream = upstream_settings(&[format!("http://{address}")]);
    of_upstream.timeout = Duration::from_millis(200);
    let gateway = gateway_with(settings(), Upstream::new(of_upstream).expect("good settings"));
    let answer = get(gateway.local_addr(), "/").await;
    assert!(answer.ends_with("hello"), "{answer}");
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Forwards to `server` with one worker, so that there is one pool.
fn gateway_with_one_pool(server: SocketAddr) -> Server {
    let mut settings = settings();
    settings.workers = std::num::NonZeroUsize::MIN;
    gateway_with(settings, upstream(&[format!("http://{server}")]))
}

async fn send(gateway: &Server, method: &str) -> String {
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{length}\r\n");
    raw(gateway.local_addr(), request.as_bytes()).await
}

/// The handler blocks the worker's only thread until the server has closed the connection, or written to it, so that the
/// runtime cannot have noticed: only a read of the socket itself can. Returns the connections of three requests.
async fn connections_used_after(unasked: &'static [u8]) -> Vec<usize> {
    let (requests, spoiled) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let (seen, spoil) = (requests.clone(), spoiled.clone());
    let address = scripted(move |mut socket, n| {
        let (seen, spoil) = (seen.clone(), spoil.clone());
        async move {
            loop {
                let head = read_head(&mut socket).await;
                if head.is_empty() {
                    return;
                }
                seen.lock().expect("not poisoned").push(n);
                let _ = socket.write_all(OK).await;
                if n > 0 {
                    continue;
                }
                // The next request is being handled.
                until("the handler waits", || spoil.load(SeqCst) == 1).await;
                let _ = socket.write_all(unasked).await;
                if unasked.is_empty() {
                    drop(socket);
                    spoil.store(2, SeqCst);
                    return;
                }
                spoil.store(2, SeqCst);
            }
        }
    })
    .await;
    let upstream = upstream(&[format!("http://{address}")]);
    let (handled, count) = (spoiled.clone(), Arc::new(AtomicUsize::new(0)));
    let handler = move |request: http::Request<tollgate_gateway::RequestBody>,
                        client: tollgate_gateway::ClientInfo| {
        if count.fetch_add(1, SeqCst) == 1 {
            handled.store(1, SeqCst);
            // A connection that was idle for less than a millisecond is not read from.
            let idle_for = Instant::now();
            while handled.load(SeqCst) != 2 || idle_for.elapsed() < Duration::from_millis(2) {
                std::thread::yield_now();
            }
        }
        let upstream = upstream.clone();
        async move {
            match tollgate_gateway::forward(request, &client, &upstream).await {
                Ok(response) => response,
                Err(error) => error.into_response(),
            }
        }
    };
    let mut settings = settings();
    settings.workers = std::num::NonZeroUsize::MIN;
    let gateway = crate::stage::serve(settings, handler);
    for method in ["POST", "POST", "POST"] {
        let answer = send(&gateway, method).await;
        assert_eq!((status(&answer), body(&answer)), (200, "ok"), "{answer}");
    }
    requests.lock().expect("not poisoned").clone()
}

#[tokio::test]
async fn a_pooled_connection_with_an_unasked_response_is_not_used_nor_is_any_other_of_its_server() {
    let unasked = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";
    assert_eq!(connections_used_after(unasked).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_closed_is_not_used() {
    for goodbye in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n"] {
        assert_eq!(connections_used_after(goodbye).await, [0, 1, 1]);
    }
}

#[tokio::test]
async fn connections_of_a_server_that_sends_more_than_its_response_are_not_reused() {
    let seen = Arc::new(AtomicUsize::new(0));
    let connections = seen.clone();
    let address = scripted(move |mut socket, _| {
        connections.fetch_add(1, SeqCst);
        async move {
            while !read_head(&mut socket).await.is_empty() {
                let _ = socket.write_all(&[OK, b"more"].concat()).await;
            }
        }
    })
    .await;
    let gateway = gateway_with_one_pool(address);
    for _ in 0..3 {
        let answer = send(&gateway, "GET").await;
        assert_eq!((status(&answer), body(&answer)), (200, "ok"), "{answer}");
    }
    assert_eq!(seen.load(SeqCst), 3);
}

/// A server that answers the first request of a connection, reads the second and closes the connection. Returns which
/// connection got which method.
async fn closes_after_second() -> (SocketAddr, Arc<Mutex<Vec<(usize, String)>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let address = scripted(move |mut socket, n| {
        let seen = seen.clone();
        async move {
            // Without a body, as it also answers HEAD.
            for answer in ["HTTP/1.1 204 No Content\r\n\r\n", ""] {
                let head = read_head(&mut socket).await;
                let Some((method, _)) = head.split_once(' ') else { return };
                seen.lock().expect("not poisoned").push((n, method.to_owned()));
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    (address, requests)
}

#[tokio::test]
async fn a_safe_request_is_sent_again_once_on_a_new_connection() {
    for method in ["GET", "HEAD", "OPTIONS"] {
        let (address, requests) = closes_after_second().await;
        let gateway = gateway_with_one_pool(address);
        assert_eq!(status(&send(&gateway, method).await), 204);
        assert_eq!(status(&send(&gateway, method).await), 204, "{method}");
        let sent = [0, 0, 1].map(|n| (n, method.to_owned()));
        assert_eq!(*requests.lock().expect("not poisoned"), sent);
    }
}

#[tokio::test]
async fn a_safe_request_is_sent_no_more_than_twice() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    // Every connection is closed after a request without a byte of a response, but for the first request of the first.
    let address = scripted(move |mut socket, n| {
        let seen = seen.clone();
        async move {
            for answer in if n == 0 { vec![OK, b""] } else { vec![&b""[..]] } {
                assert!(!read_head(&mut socket).await.is_empty());
                seen.lock().expect("not poisoned").push(n);
                let _ = socket.write_all(answer).await;
            }
        }
    })
    .await;
    let gateway = gateway_with_one_pool(address);
    assert_eq!(status(&send(&gateway, "GET").await), 200);
    assert_eq!(status(&send(&gateway, "GET").await), 502);
    assert_eq!(*requests.lock().expect("not poisoned"), [0, 0, 1]);
}

#[tokio::test]
async fn what_may_have_been_done_is_never_sent_again() {
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let (address, requests) = closes_after_second().await;
        let gateway = gateway_with_one_pool(address);
        assert_eq!(status(&send(&gateway, "GET").await), 204);
        assert_eq!(status(&send(&gateway, method).await), 502, "{method}");
        let sent = [(0, "GET".to_owned()), (0, method.to_owned())];
        assert_eq!(*requests.lock().expect("not poisoned"), sent);
    }
    // A GET with a body, which the server may have acted on.
    let (address, requests) = closes_after_second().await;
    let gateway = gateway_with_one_pool(address);
    assert_eq!(status(&send(&gateway, "GET").await), 204);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(status(&raw(gateway.local_addr(), request).await), 502);
    assert_eq!(requests.lock().expect("not poisoned").len(), 2);
}

#[tokio::test]
async fn a_request_on_a_new_connection_or_with_part_of_a_response_is_never_sent_again() {
    for begun in ["", "HTTP/1.1 200 OK\r\nConte", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let address = scripted(move |mut socket, _| {
            let counted = counted.clone();
            async move {
                // On a new connection nothing at all comes back; on a pooled one, a part.
                for answer in
                    if begun.is_empty() { vec![""] } else { vec![str::from_utf8(OK).expect("text"), begun] }
                {
                    if read_head(&mut socket).await.is_empty() {
                        return;
                    }
                    counted.fetch_add(1, SeqCst);
                    let _ = socket.write_all(answer.as_bytes()).await;
                }
            }
        })
        .await;
        let gateway = gateway_with_one_pool(address);
        let expected = if begun.is_empty() {
            1
        } else {
            assert_eq!(status(&send(&gateway, "GET").await), 200);
            2
        };
        assert_eq!(status(&send(&gateway, "GET").await), 502, "{begun:?}");
        assert_eq!(requests.load(SeqCst), expected, "{begun:?}");
    }
}

#[tokio::test]
async fn malformed_chunks_of_a_server_are_answered_502() {
    for chunk in ["5;\r\nhello", "5;a=\r\nhello", "5 ;a=\"b\r\nhello", "5;a=\x01\r\nhello", "5;a\nb\r\nhello"]
    {
        let address = scripted(move |mut socket, _| async move {
            read_head(&mut socket).await;
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = socket.write_all(format!("{head}{chunk}\r\n0\r\n\r\n").as_bytes()).await;
        })
        .await;
        let gateway = gateway_with_one_pool(address);
        let answer = send(&gateway, "GET").await;
        assert_eq!(status(&answer), 502, "{chunk:?}: {answer}");
    }
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
    let mut of_upstream = upstream_settings(&[format!("http://{address}")]);
    of_upstream.health = Some(HealthCheck {
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
    settings.workers = std::num::NonZeroUsize::MIN;
    let gateway = crate::stage::serve(settings, handler);
    let mut slow = connect(gateway.local_addr()).await;
    slow.write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha").await.expect("sent");
    read_head(&mut slow).await;
    assert_eq!(body(&get(gateway.local_addr(), "/").await), "a");
    let settings = upstream_settings(&[b.url(), a.url()]);
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
    let make = |url: &str| {
        let mut settings = upstream_settings(&["http://127.0.0.1:1".to_owned()]);
        settings.servers[0].url = url.to_owned();
        Upstream::new(settings).map(drop)
    };
    assert!(make("http://127.0.0.1:1").is_ok());
    assert!(matches!(make("127.0.0.1:1"), Err(UpstreamError::Url { .. })));
}
