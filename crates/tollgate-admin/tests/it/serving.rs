//! The listener: to the end, and whoever comes.

use crate::site::{Site, ask};
use rcgen::generate_simple_self_signed;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tollgate_net::{Contents, Drained, Identity, Phase, TlsAcceptor};

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn health_flips_before_anything_closes_and_is_told_to_the_end() {
    let site = Site::open().await;
    let drain = site.told.drain.clone();
    let connection = drain.guard();
    assert_eq!(site.get("/readyz").await.status, 200);
    let running = tokio::spawn({
        let drain = drain.clone();
        async move { drain.run().await }
    });

    drain.begin();
    drain.reached(Phase::Leaving).await;
    let leaving = site.get("/readyz").await;
    assert_eq!(leaving.status, 503);
    let told = leaving.json();
    let expected = serde_json::json!({
        "state": "down", "phase": "leaving", "why": "leaving: send new requests elsewhere",
    });
    assert_eq!((&told["ready"], &told["components"]["drain"]), (&false.into(), &expected));
    // Alive all the same: whoever restarts what is not alive must not cut the drain short.
    assert_eq!(site.get("/healthz").await.status, 200);
    assert_eq!(site.get("/metrics").await.status, 200);

    // One who keeps a connection open and says nothing does not hold it up.
    let mut idle = site.connect().await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it reads");
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.expect("it answers");
    assert_eq!(&first, b"HTTP/1.1 200");

    drain.begin();
    assert_eq!(running.await.expect("no panic"), Drained::Left(1));
    timeout(LONG, site.serving).await.expect("it ends").expect("no panic");
    let refused = tokio::net::TcpStream::connect(site.address).await;
    assert!(refused.is_err(), "it is closed");
    drop(connection);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_no_request_is_closed() {
    let site = Site::open().await;
    let mut slow = site.connect().await;
    slow.write_all(b"GET /healthz HTT").await.expect("it reads");
    let mut answer = Vec::new();
    let closed = timeout(4 * LONG, slow.read_to_end(&mut answer)).await;
    assert!(closed.is_ok(), "it is still open after {:?}", 4 * LONG);
}

#[tokio::test]
async fn nonsense_is_answered_and_harms_nobody() {
    let site = Site::open().await;
    for nonsense in ["\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\u{7f} HTTP/1.1\r\n\r\n"] {
        let mut stream = site.connect().await;
        stream.write_all(nonsense.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        // Reset or answered: closed.
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it closes");
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(site.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn beyond_its_ceiling_connections_are_closed_and_room_comes_back() {
    let site = Site::open().await;
    let mut idle = Vec::new();
    for _ in 0..256 {
        let mut stream = site.connect().await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it reads");
        let mut first = [0; 12];
        timeout(LONG, stream.read_exact(&mut first)).await.expect("in time").expect("it answers");
        idle.push(stream);
    }
    let mut above = site.connect().await;
    let mut nothing = [0; 1];
    let read = timeout(LONG, above.read(&mut nothing)).await.expect("it closes");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");

    drop(idle);
    let again = async {
        loop {
            let mut stream = site.connect().await;
            let asked = stream
                .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .await;
            let mut answer = Vec::new();
            if asked.is_ok() && stream.read_to_end(&mut answer).await.is_ok() && !answer.is_empty() {
                return answer;
            }
        }
    };
    let answer = timeout(LONG, again).await.expect("there is room again");
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn it_speaks_tls_where_that_is_asked_for() {
    let made = generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let cert = made.cert.pem();
    let identity = Identity::parse(
        &Contents::new("cert.pem", cert.as_str()),
        &Contents::new("key.pem", made.signing_key.serialize_pem()),
    );
    let acceptor = TlsAcceptor::new(identity.expect("a pair"), &["http/1.1"]);
    let site = Site::open_with(|admin| admin.tls(acceptor)).await;

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM")).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, site.connect().await).await;
    let request = "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(ask(stream.expect("trusted"), request).await.status, 200);

    let mut plain = site.connect().await;
    plain.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    let _ = timeout(LONG, plain.read_to_end(&mut answer)).await.expect("it closes");
    assert!(!answer.starts_with(b"HTTP"), "no page without TLS");
}
