//! What is read, what is refused with which words, and what is never printed.

use super::*;
use proptest::prelude::*;

fn host(name: &str, port: u16) -> Host {
    Host { name: name.to_owned(), port }
}

fn login(user: Option<&str>, password: &str) -> Login {
    Login { user: user.map(str::to_owned), password: password.to_owned() }
}

fn read(text: &str) -> Address {
    Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> AddressError {
    match Address::parse(text) {
        Ok(address) => panic!("{text} was read as {address}"),
        Err(error) => error,
    }
}

#[test]
fn one_server() {
    let address = read("redis://limits.internal");
    assert_eq!(address.servers, Servers::One(host("limits.internal", 6379)));
    assert_eq!((address.login, address.database, address.tls), (None, 0, None));

    let address = read(" redis://10.0.0.1:7000/3\n");
    assert_eq!((address.servers, address.database), (Servers::One(host("10.0.0.1", 7000)), 3));

    assert_eq!(read("redis://[::1]:7000/").servers, Servers::One(host("::1", 7000)));
    assert_eq!(read("redis://[fe80::2]").servers, Servers::One(host("fe80::2", 6379)));
    assert_eq!(read("REDIS://h").servers, Servers::One(host("h", 6379)));
    assert_eq!(Address::parse("redis://h"), Ok(read("redis://h:6379/0")));
}

#[test]
fn logins_are_unescaped() {
    assert_eq!(read("redis://:secret@h").login, Some(login(None, "secret")));
    assert_eq!(read("redis://gate:a:b@h").login, Some(login(Some("gate"), "a:b")));
    assert_eq!(read("redis://g%40te:p%2Fa%3fs%25s@h").login, Some(login(Some("g@te"), "p/a?s%s")));
    // The last `@` is the one that counts; a password with one in it is understood.
    assert_eq!(read("redis://:p@ss@h:1").login, Some(login(None, "p@ss")));
}

#[test]
fn tls_with_an_authority_of_ones_own() {
    assert_eq!(read("rediss://h").tls, Some(Tls { ca: None }));
    let address = read("rediss://h/2?ca=/etc/my%20ca.pem");
    assert_eq!(address.tls, Some(Tls { ca: Some("/etc/my ca.pem".into()) }));
    assert_eq!(address.database, 2);
    assert_eq!(
        refused("redis://h?ca=/ca.pem").to_string(),
        "option `ca` means nothing here: it needs TLS, as in rediss://"
    );
}

#[test]
fn sentinels() {
    let address = read("redis-sentinel://gate:pw@a,b:1,[::1]/limits/4?sentinel-password=x&sentinel-user=s");
    let sentinels = vec![host("a", 26379), host("b", 1), host("::1", 26379)];
    let login_there = Some(login(Some("s"), "x"));
    assert_eq!(
        address.servers,
        Servers::Sentinels { sentinels, primary: "limits".to_owned(), login: login_there }
    );
    assert_eq!((address.login, address.database), (Some(login(Some("gate"), "pw")), 4));
    assert!(read("rediss-sentinel://a/m").tls.is_some());
    for text in ["redis-sentinel://a", "redis-sentinel://a/", "redis-sentinel://a//1"] {
        assert_eq!(refused(text), AddressError::NoPrimary);
    }
    assert!(matches!(refused("redis-sentinel://a/m/1/2"), AddressError::LongPath { .. }));
    assert!(matches!(
        refused("redis-sentinel://a/m?sentinel-user=u"),
        AddressError::MisplacedOption { name: "sentinel-user", .. }
    ));
    assert!(matches!(refused("redis://a?sentinel-password=u"), AddressError::MisplacedOption { .. }));
}

#[test]
fn clusters() {
    assert_eq!(read("redis-cluster://a,b:2").servers, Servers::Cluster(vec![host("a", 6379), host("b", 2)]));
    assert!(read("rediss-cluster://a/0").tls.is_some());
    assert_eq!(refused("redis-cluster://a/7"), AddressError::DatabaseOnCluster { database: 7 });
}

#[test]
fn mistakes_say_where_and_what_to_write() {
    for (text, words) in [
        ("localhost:6379", "no scheme: write the address as redis://host:6379"),
        ("", "no scheme: write the address as redis://host:6379"),
        (
            "redsi://h",
            "unknown scheme: the nearest is `redis://`; there are redis, rediss, redis-sentinel, rediss-sentinel, \
             redis-cluster, rediss-cluster",
        ),
        ("redis://", "host 1 is empty: write host or host:port, several separated by commas"),
        ("redis-cluster://a,,b", "host 2 is empty: write host or host:port, several separated by commas"),
        ("redis://a,b", "2 hosts for one server: use redis-cluster:// or redis-sentinel:// for several"),
        (
            "redis-cluster://a:1,b:99999",
            "the port of host 2 is not a number from 1 to 65535 (a password stands in front of an `@`)",
        ),
        (
            "redis://a:0",
            "the port of host 1 is not a number from 1 to 65535 (a password stands in front of an `@`)",
        ),
        (
            "redis://a:+1",
            "the port of host 1 is not a number from 1 to 65535 (a password stands in front of an `@`)",
        ),
        (
            "redis://fe80::1",
            "host 1 is not a host name: letters, digits, `-`, `_` and `.`, or an IPv6 address in [brackets]",
        ),
        ("redis://me@h", "no password in front of the `@`: write user:password@ or :password@"),
        ("redis://me:@h", "no password in front of the `@`: write user:password@ or :password@"),
        (
            "redis://:%zz@h",
            "a `%` in the password is not followed by two hexadecimal digits that make UTF-8: write `%` itself as %25",
        ),
        ("redis://h/x", "the database is not a number from 0 to 65535: write it as /0"),
        ("redis://h/1/2", "the path has more parts than /database"),
        (
            "rediss://h?c=1",
            "unknown option in place 1: the nearest is `ca`; there are ca, sentinel-user, sentinel-password",
        ),
        ("rediss://h?ca=", "option `ca` needs one value: write ca=value, once"),
        ("rediss://h?ca=a&ca=b", "option `ca` needs one value: write ca=value, once"),
    ] {
        assert_eq!(refused(text).to_string(), words, "{text}");
    }
    assert_eq!(refused("rediss-clutser://h"), AddressError::UnknownScheme { nearest: "rediss-cluster" });
}

/// Every way to get a password wrong, and none of them shows it.
#[test]
fn no_secret_is_printed() {
    for text in [
        "redis://user:hunter2",
        "redis://user:hunter2:6379",
        "redis://:hunter2/x@h",
        "redis://:hunter2?x@h",
        "redis://hunter2@h",
        "redis://:%hunter2@h",
        "hunter2",
        "redis-sentinel://a/m?sentinel-passwd=hunter2",
        "redis-sentinel://a/m?sentinel-password=%hunter2",
        "redis-sentinel://a/m?hunter2",
        "redis://a,b:hunter2@h:hunter2",
    ] {
        let error = refused(text);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error:?}");
    }
    let address = read("rediss-sentinel://gate:hunter2@a,b/limits/1?sentinel-password=hunter2");
    assert_eq!(address.to_string(), "rediss-sentinel://a:26379,b:26379/limits/1");
    let printed = format!("{address:?} {:?} {:?}", address.servers, address.login);
    assert!(!printed.contains("hunter2"), "{printed}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = Address::parse(&text);
    }

    #[test]
    fn any_text_after_a_scheme_is_read_or_refused(scheme in 0..6_usize, text in "[\\[\\]a:/?@%=&,0-9é -]{0,40}") {
        let text = format!("{}://{text}", SCHEMES[scheme]);
        if let Ok(address) = Address::parse(&text) {
            // What is printed is an address too, of the same servers.
            if let Ok(again) = Address::parse(&address.to_string()) {
                prop_assert_eq!(again.database, address.database);
            }
        }
    }

    #[test]
    fn any_password_survives_escaping(password in "\\PC{1,20}") {
        let escaped: String = password.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let address = Address::parse(&format!("redis://u:{escaped}@h")).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(address.login, Some(login(Some("u"), &password)));
    }
}
