//! TLS at the doors for Redis clients and for Envoy, asked by clients that are nobody's of ours.

use crate::{folder::Folder, opened::Opened, rls::Client};
use std::{fs, process::Command};
use testkit::TlsFiles;

const WORD: &str = "sesame-sesame-sesame";

/// A server of this door, with a certificate and a word; and an authority that has nothing to do with it.
fn served(folder: &Folder, door: &str, more: &str) -> (Opened, TlsFiles, TlsFiles) {
    let make = |name: &str| {
        let directory = folder.path().join(name);
        fs::create_dir(&directory).unwrap();
        TlsFiles::make(&directory)
    };
    let (files, others) = (make("ours"), make("others"));
    let tls = format!("{{ cert: {}, key: {} }}", files.certificate.display(), files.key.display());
    let listen = format!("{door}: {{ address: 127.0.0.1:0, tokens: [ {WORD} ], tls: {tls} }}");
    let rules = folder.file("tollgate.yaml", format!("version: 1\nlisten: {{ {listen} }}\n{more}"));
    (Opened::start(&rules, &[door]), files, others)
}

#[test]
fn a_redis_client() {
    let folder = Folder::new();
    let limits = "limits: { slow: { token_bucket: { rate: 1/h, burst: 3 } } }";
    let (opened, files, others) = served(&folder, "resp", limits);
    let port = opened.address("resp").port().to_string();
    let ask = |word: &str, options: &[&str]| {
        let mut client = Command::new("redis-cli");
        client.args(["-h", "127.0.0.1", "-p", &port, "--no-auth-warning", "-a", word]);
        let output = client.args(options).args(["TG.CHECK", "slow", "alice"]).output();
        let output = output.expect("redis-cli is installed by the set-up");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let trusting = |files: &TlsFiles| files.authority.display().to_string();
    let told = ask(WORD, &["--tls", "--cacert", &trusting(&files)]);
    assert!(told.starts_with("0\n3\n2\n-1\n"), "{told}");
    let told = ask("barley", &["--tls", "--cacert", &trusting(&files)]);
    assert!(told.contains("NOAUTH Authentication required"), "{told}");
    let told = ask(WORD, &["--tls", "--cacert", &trusting(&others)]);
    assert!(told.contains("certificate verify failed"), "{told}");
    let told = ask(WORD, &[]);
    assert!(!told.starts_with('0'), "without TLS there is no answer: {told}");
    let told = ask(WORD, &["--tls", "--cacert", &trusting(&files)]);
    assert!(told.starts_with("0\n3\n1\n"), "only those who were let in have charged: {told}");
}

#[test]
fn a_grpc_client() {
    let folder = Folder::new();
    let limit = "rate_limit: { unit: year, requests_per_unit: 2 }";
    folder.file("shop.yaml", format!("domain: shop\ndescriptors: [ {{ key: user, {limit} }} ]"));
    let (opened, files, others) = served(&folder, "grpc", "domains: [ shop.yaml ]");
    let ask = |word: &str, trusted: Option<&TlsFiles>| {
        let mut more = vec![word.to_owned()];
        more.extend(trusted.map(|files| files.authority.display().to_string()));
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        Client::to(opened.address("grpc"), &more).hit("alice")
    };
    assert_eq!(ask(WORD, Some(&files))["statuses"][0]["limitRemaining"], 1);
    assert_eq!(ask("barley", Some(&files))["error"], "UNAUTHENTICATED");
    assert_eq!(ask(WORD, Some(&others))["error"], "UNAVAILABLE");
    assert_eq!(ask(WORD, None)["error"], "UNAVAILABLE", "without TLS there is no answer");
    assert_eq!(ask(WORD, Some(&files))["overallCode"], "OK");
    assert_eq!(ask(WORD, Some(&files))["overallCode"], "OVER_LIMIT");
}
