//! Certificates: what is wrong with them, and swapping them under way.

use rcgen::generate_simple_self_signed;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex},
    time::{Instant, timeout},
};
use tokio_rustls::{TlsConnector, client};
use tollgate_net::{Contents, HandshakeError, Identity, TlsAcceptor, TlsError, TlsFiles, TlsStream};

/// A certificate for localhost that nobody else has, and its key, as PEM.
pub(crate) fn pair() -> (String, String) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub(crate) fn parse(cert: &str, key: &str) -> Result<Identity, TlsError> {
    Identity::parse(&Contents::new("cert.pem", cert), &Contents::new("key.pem", key))
}

#[track_caller]
fn wrong(cert: &str, key: &str) -> String {
    parse(cert, key).expect_err("it cannot be served").to_string()
}

/// The client's end of a connection on which it trusts `cert` alone.
pub(crate) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    cert: &str,
    alpn: &[&str],
) -> std::io::Result<client::TlsStream<S>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM")).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Both ends of a connection on which the client trusts `cert` alone.
async fn shake_hands(
    acceptor: &TlsAcceptor,
    cert: &str,
    alpn: &[&str],
) -> Result<(TlsStream<DuplexStream>, client::TlsStream<DuplexStream>), String> {
    let (ours, theirs) = duplex(16 << 10);
    let (server, client) = tokio::join!(acceptor.accept(ours), connect(theirs, cert, alpn));
    let client = client.map_err(|error| error.to_string())?;
    Ok((server.map_err(|error| error.to_string())?, client))
}

#[tokio::test]
async fn a_certificate_from_files_is_served_with_the_protocols_offered() {
    let directory = tempfile::tempdir().expect("a directory");
    let (cert, key) = pair();
    let files = TlsFiles { cert: directory.path().join("c"), key: directory.path().join("k") };
    std::fs::write(&files.cert, &cert).expect("writable");
    std::fs::write(&files.key, key).expect("writable");
    let acceptor = TlsAcceptor::read(&files, &["h2", "http/1.1"]).expect("they belong together");

    for (asked, agreed) in [(vec!["h2"], Some("h2")), (vec!["http/1.1", "h2"], Some("h2")), (vec![], None)] {
        let (server, _) = shake_hands(&acceptor, &cert, &asked).await.expect("trusted");
        assert_eq!(server.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes), "{asked:?}");
    }
    let refused = shake_hands(&acceptor, &cert, &["ftp"]).await.expect_err("nothing in common");
    assert!(refused.contains("NoApplicationProtocol"), "{refused}");
}

#[tokio::test]
async fn a_renewed_certificate_is_served_from_the_next_handshake_on() {
    let (old, old_key) = pair();
    let (new, new_key) = pair();
    let acceptor = TlsAcceptor::new(parse(&old, &old_key).expect("a pair"), &[]);
    let (mut server, mut client) = shake_hands(&acceptor, &old, &[]).await.expect("trusted");
    assert!(shake_hands(&acceptor, &new, &[]).await.is_err(), "it is not served yet");

    acceptor.clone().replace(parse(&new, &new_key).expect("a pair"));
    shake_hands(&acceptor, &new, &[]).await.expect("all clones serve it");
    assert!(shake_hands(&acceptor, &old, &[]).await.is_err(), "it is not served any more");

    // The connection that stood, stands.
    client.write_all(b"still here").await.expect("open");
    let mut read = [0; 10];
    server.read_exact(&mut read).await.expect("open");
    assert_eq!(&read, b"still here");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_shake_hands_is_not_waited_for() {
    let (cert, key) = pair();
    let acceptor = TlsAcceptor::new(parse(&cert, &key).expect("a pair"), &[]);
    for (acceptor, seconds) in
        [(acceptor.clone(), 10), (acceptor.handshake_timeout(Duration::from_secs(2)), 2)]
    {
        let (ours, _theirs) = duplex(1024);
        let begun = Instant::now();
        let error = timeout(Duration::from_secs(60), acceptor.accept(ours)).await.expect("bounded");
        assert!(matches!(error, Err(HandshakeError::Slow(_))), "{error:?}");
        assert_eq!(begun.elapsed().as_secs(), seconds);
    }
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_apart() {
    let (cert, key) = pair();
    let acceptor = TlsAcceptor::new(parse(&cert, &key).expect("a pair"), &[]);
    let (ours, mut theirs) = duplex(1024);
    theirs.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("room");
    let error = acceptor.accept(ours).await.expect_err("no TLS");
    assert!(matches!(error, HandshakeError::Failed(_)), "{error}");
}

#[test]
fn every_mistake_names_its_file_and_what_to_do() {
    let (cert, key) = pair();
    let (_, other) = pair();
    let wants_cert =
        "cert.pem has no certificate: a block that begins with -----BEGIN CERTIFICATE----- is expected";
    let wants_key = "key.pem has no private key: a block such as -----BEGIN PRIVATE KEY----- is expected";

    assert_eq!(wrong("", &key), wants_cert);
    assert_eq!(wrong("hello", &key), wants_cert);
    assert_eq!(wrong(&key, &cert), format!("{wants_cert}; it has a private key: are cert and key swapped?"));
    assert_eq!(wrong(&cert, ""), wants_key);
    assert_eq!(wrong(&cert, &cert), format!("{wants_key}; it has a certificate: are cert and key swapped?"));
    let encrypted = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
    let hint = "this one is encrypted: decrypt it with `openssl pkey`";
    assert_eq!(wrong(&cert, &encrypted), format!("{wants_key}; {hint}"));
    assert_eq!(
        wrong(&cert, &format!("{key}{other}")),
        "key.pem has 2 private keys; leave the one that belongs to the certificate"
    );
    assert_eq!(
        wrong(&cert, &other),
        "the private key in key.pem does not belong to the first certificate in cert.pem"
    );

    let half = &cert[..cert.len() / 2];
    assert_eq!(wrong(half, &key), "cert.pem is damaged: -----END CERTIFICATE----- is missing");
    let scrambled = cert.replacen("MII", "!!!", 1);
    let not_base64 = "cert.pem is damaged: what stands between BEGIN and END is not base64";
    assert_eq!(wrong(&scrambled, &key), not_base64);

    let none_inside = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let told = wrong(none_inside, &key);
    assert!(told.starts_with("the first certificate in cert.pem cannot be used: "), "{told}");
    let none_inside = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let told = wrong(&cert, none_inside);
    assert!(told.starts_with("the private key in key.pem cannot be used: "), "{told}");

    let gone = TlsFiles { cert: "/nowhere/cert.pem".into(), key: "/nowhere/key.pem".into() };
    let told = Identity::read(&gone).expect_err("there is none").to_string();
    assert_eq!(told, "cannot read /nowhere/cert.pem: No such file or directory (os error 2)");
}

#[test]
fn keys_are_not_printed() {
    let (cert, key) = pair();
    let identity = parse(&cert, &key).expect("a pair");
    assert_eq!(format!("{identity:?}"), "Identity { certificates: 1, .. }");
    let acceptor = TlsAcceptor::new(identity, &[]);
    assert_eq!(format!("{acceptor:?}"), "TlsAcceptor { identity: Identity { certificates: 1, .. }, .. }");
}
