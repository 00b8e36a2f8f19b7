//! Whose request it is, and who may say so.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tollgate_http::{TrustedProxies, bucket_of};

fn proxies() -> TrustedProxies {
    TrustedProxies::new(["10.0.0.0/8".parse().unwrap(), "2001:db8:ffff::/48".parse().unwrap()])
}

fn client(peer: &str, lines: &[&str]) -> String {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append("x-forwarded-for", HeaderValue::from_bytes(line.as_bytes()).unwrap());
    }
    proxies().client(peer.parse().unwrap(), &headers).to_string()
}

#[test]
fn whoever_is_not_trusted_speaks_for_itself() {
    assert_eq!(client("192.0.2.1", &["1.1.1.1"]), "192.0.2.1");
    assert_eq!(client("192.0.2.1", &[]), "192.0.2.1");
    let nobody = TrustedProxies::default();
    let spoofed =
        HeaderMap::from_iter([("x-forwarded-for".parse().unwrap(), HeaderValue::from_static("1.1.1.1"))]);
    assert_eq!(nobody.client(Ipv4Addr::LOCALHOST.into(), &spoofed), Ipv4Addr::LOCALHOST);
}

#[test]
fn what_the_client_wrote_is_left_of_what_the_proxies_wrote() {
    assert_eq!(client("10.0.0.1", &["203.0.113.7"]), "203.0.113.7");
    assert_eq!(client("10.0.0.1", &["1.1.1.1, 203.0.113.7"]), "203.0.113.7");
    assert_eq!(client("10.0.0.1", &["10.0.0.2, 1.1.1.1, 203.0.113.7"]), "203.0.113.7");
    assert_eq!(client("10.0.0.1", &["1.1.1.1,203.0.113.7 ,\t10.0.0.2"]), "203.0.113.7");
}

#[test]
fn lines_are_one_list() {
    assert_eq!(client("10.0.0.1", &["1.1.1.1", "203.0.113.7", "10.0.0.2"]), "203.0.113.7");
    assert_eq!(client("10.0.0.1", &["203.0.113.7", "10.0.0.3, 10.0.0.2"]), "203.0.113.7");
}

#[test]
fn what_is_no_address_ends_the_search() {
    assert_eq!(client("10.0.0.1", &["unknown"]), "10.0.0.1");
    assert_eq!(client("10.0.0.1", &["203.0.113.7, junk, 10.0.0.2"]), "10.0.0.2");
    assert_eq!(client("10.0.0.1", &["203.0.113.7, , 10.0.0.2"]), "10.0.0.2");
    assert_eq!(client("10.0.0.1", &["203.0.113.7, 010.0.0.3"]), "10.0.0.1");
    assert_eq!(client("10.0.0.1", &["203.0.113.7, \u{e9}"]), "10.0.0.1");
    assert_eq!(client("10.0.0.1", &[""]), "10.0.0.1");
}

#[test]
fn only_proxies_all_the_way_is_the_farthest_of_them() {
    assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
}

#[test]
fn mapped_addresses_are_what_they_map() {
    assert_eq!(client("::ffff:10.0.0.1", &["::ffff:203.0.113.7"]), "203.0.113.7");
    let mapped = TrustedProxies::new(["::ffff:10.0.0.0/104".parse().unwrap()]);
    assert!(mapped.trusts("10.9.9.9".parse().unwrap()) && mapped.trusts("::ffff:10.9.9.9".parse().unwrap()));
    assert!(!mapped.trusts("11.0.0.1".parse().unwrap()));
    let all = TrustedProxies::new(["::/0".parse().unwrap()]);
    assert!(!all.trusts("11.0.0.1".parse().unwrap()), "all of IPv6 is none of IPv4");
}

#[test]
fn ports_and_brackets_are_left_off() {
    assert_eq!(client("10.0.0.1", &["203.0.113.7:8080"]), "203.0.113.7");
    assert_eq!(client("10.0.0.1", &["[2001:db8::1]:8080"]), "2001:db8::1");
    assert_eq!(client("10.0.0.1", &["[2001:db8::1]"]), "2001:db8::1");
    assert_eq!(client("2001:db8:ffff::1", &["2001:db8::1"]), "2001:db8::1");
    assert_eq!(client("10.0.0.1", &["[203.0.113.7]"]), "10.0.0.1");
}

proptest! {
    #[test]
    fn nothing_a_client_writes_moves_its_address(
        written in prop::collection::vec("[ -~]{0,40}", 0..4),
        hops in prop::collection::vec(any::<[u8; 3]>(), 0..3),
        ours in any::<[u8; 4]>().prop_filter("a client", |it| it[0] != 10),
    ) {
        // The first proxy appends the client's address; each further one the one before.
        let ours = Ipv4Addr::from(ours);
        let proxies: Vec<Ipv4Addr> = hops.iter().map(|[a, b, c]| Ipv4Addr::new(10, *a, *b, *c)).collect();
        let mut headers = HeaderMap::new();
        for line in &written {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let seen = [ours].iter().chain(&proxies).map(ToString::to_string).collect::<Vec<_>>().join(", ");
        headers.append("x-forwarded-for", seen.parse().unwrap());
        let found = super::client::proxies().client(Ipv4Addr::new(10, 0, 0, 1).into(), &headers);
        prop_assert_eq!(found, IpAddr::from(ours));
    }

    #[test]
    fn a_subscriber_has_one_bucket(network in any::<u64>(), one in any::<u64>(), other in any::<u64>()) {
        let address = |host: u64| IpAddr::from(Ipv6Addr::from_bits(u128::from(network) << 64 | u128::from(host)));
        prop_assume!(network != 0);
        prop_assert_eq!(bucket_of(address(one)), bucket_of(address(other)));
        let next = Ipv6Addr::from_bits(u128::from(network ^ 1) << 64 | u128::from(one));
        prop_assert_ne!(bucket_of(address(one)), bucket_of(next.into()));
    }
}
