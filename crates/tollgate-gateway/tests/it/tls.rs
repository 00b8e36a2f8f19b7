//! TLS on either side, and certificates that change.

use crate::stage::{Origin, connect, gateway_with, serve, settings, status, upstream, upstream_settings};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{PrivateKeyDer, ServerName},
};
use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use tollgate_gateway::{Settings, Upstream};
use tollgate_net::{TlsAcceptor as Acceptor, TlsFiles, Watcher};

struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tollgate-gateway-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn write(&self, pair: &CertifiedKey<KeyPair>) -> TlsFiles {
        let settings = TlsFiles { cert: self.0.join("cert.pem"), key: self.0.join("key.pem") };
        std::fs::write(&settings.cert, pair.cert.pem()).expect("written");
        std::fs::write(&settings.key, pair.signing_key.serialize_pem()).expect("written");
        settings
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pair(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).expect("a certificate")
}

/// With TLS by these files, which are followed.
async fn with_tls(files: TlsFiles) -> Settings {
    let mut settings = settings();
    let (watcher, _) = Watcher::open([&files.cert, &files.key]).await;
    let acceptor = Acceptor::read(&files, &tollgate_gateway::ALPN).expect("a pair");
    tokio::spawn(acceptor.clone().follow("gateway".to_owned(), watcher, |_| ()));
    settings.tls = Some(acceptor);
    settings
}

async fn hello(
    address: SocketAddr,
    trusted: &CertifiedKey<KeyPair>,
    alpn: &[&[u8]],
) -> Result<TlsStream<TcpStream>, std::io::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.cert.der().clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, connect(address).await).await
}

#[tokio::test]
async fn both_versions_over_tls() {
    let (files, pair) = (Files::new("both"), pair("localhost"));
    let origin = Origin::start("a").await;
    let gateway = gateway_with(with_tls(files.write(&pair)).await, upstream(&[origin.url()]));
    let mut stream = hello(gateway.local_addr(), &pair, &[b"http/1.1"]).await.expect("TLS");
    stream.write_all(b"GET /headers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert_eq!(status(&answer), 200, "{answer}");
    assert!(answer.contains("x-forwarded-proto: https"), "{answer}");
    let stream = hello(gateway.local_addr(), &pair, &[b"h2"]).await.expect("TLS");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), io)
            .await
            .expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::get("https://localhost/").body(String::new()).expect("a request");
    assert_eq!(sender.send_request(request).await.expect("an answer").status().as_u16(), 200);
}

#[tokio::test]
async fn a_changed_certificate_is_used() {
    let (files, old, new) = (Files::new("changed"), pair("localhost"), pair("localhost"));
    let origin = Origin::start("a").await;
    let gateway = gateway_with(with_tls(files.write(&old)).await, upstream(&[origin.url()]));
    hello(gateway.local_addr(), &old, &[]).await.expect("the old one");
    assert!(hello(gateway.local_addr(), &new, &[]).await.is_err());
    files.write(&new);
    let is_used = || async { hello(gateway.local_addr(), &new, &[]).await.ok() };
    testkit::eventually_async("the new certificate to be used", is_used).await;
}

#[tokio::test]
async fn upstreams_over_tls() {
    // A gateway in front of a gateway: the inner one speaks TLS.
    let (files, pair) = (Files::new("upstream"), pair("localhost"));
    let origin = Origin::start("a").await;
    let inner = gateway_with(with_tls(files.write(&pair)).await, upstream(&[origin.url()]));
    let url = format!("https://localhost:{}", inner.local_addr().port());
    let of_outer = upstream_settings(std::slice::from_ref(&url));
    let outer = Upstream::with_roots(of_outer.clone(), [pair.cert.der().to_vec()]).expect("good settings");
    let outer = serve(settings(), crate::stage::Forwarding(outer));
    for _ in 0..5 {
        let answer = crate::stage::get(outer.local_addr(), "/").await;
        assert_eq!((status(&answer), crate::stage::body(&answer)), (200, "a"), "{answer}");
    }
    // One that is not trusted is not spoken to.
    let stranger =
        Upstream::with_roots(of_outer, [self::pair("localhost").cert.der().to_vec()]).expect("good settings");
    let outer = serve(settings(), crate::stage::Forwarding(stranger));
    assert_eq!(status(&crate::stage::get(outer.local_addr(), "/").await), 502);
}

/// A server that speaks HTTP/2 only has no upgrades, and is well all the same.
#[tokio::test]
async fn an_upgrade_that_a_server_over_tls_does_not_take_is_not_its_failure() {
    let pair = pair("localhost");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .expect("a certificate");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = crate::stage::scripted(move |socket, _| {
        let acceptor = acceptor.clone();
        async move {
            assert!(acceptor.accept(socket).await.is_err(), "they agree on nothing");
        }
    })
    .await;
    let url = format!("https://localhost:{}", address.port());
    let of_upstream = upstream_settings(&[url]);
    let upstream = Upstream::with_roots(of_upstream, [pair.cert.der().to_vec()]).expect("good settings");
    let gateway = gateway_with(settings(), upstream.clone());
    for _ in 0..5 {
        let request =
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n";
        let answer = crate::stage::raw(gateway.local_addr(), request).await;
        assert_eq!(status(&answer), 501, "{answer}");
    }
    assert!(upstream.servers().all(|server| server.healthy));
}
