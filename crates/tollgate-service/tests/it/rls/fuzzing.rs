//! Messages that nobody wrote: decoded or told, and never worse.

use super::stage::{Rig, descriptor, frame, hits, request, with_limit};
use prost::Message;
use std::{fs, path::PathBuf};
use testkit::Fuzz;
use tollgate_service::rls::messages::{Code, RateLimitRequest};

const DOMAIN: &str =
    "domain: d\ndescriptors: [ { key: k, rate_limit: { unit: hour, requests_per_unit: 2 } } ]";

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/rls")
}

/// With `BLESS=1` the corpus is written.
#[test]
fn the_corpus_is_of_requests() {
    let requests = [
        ("plain", request([descriptor(&[("k", "v")])])),
        ("several", request([descriptor(&[("k", "v"), ("l", "")]), hits(&[("k", "w")], u64::MAX)])),
        ("override", request([with_limit(&[("k", "v")], 5, 3)])),
        ("empty", RateLimitRequest::default()),
    ];
    for (name, request) in requests {
        let path = corpus().join(name);
        let bytes = frame(&request).slice(5..);
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(corpus()).expect("a folder");
            fs::write(&path, &bytes).expect("writable");
        }
        assert!(fs::read(&path).expect("it is there") == bytes, "{name}");
    }
}

#[test]
fn whatever_comes_is_answered_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let door = Rig::new(", headers: true, dynamic_metadata: true", DOMAIN);
    Fuzz::from(corpus()).run(|input, _| {
        let Ok(request) = RateLimitRequest::decode(input) else { return };
        let asked = request.descriptors.len();
        if let Ok(told) = runtime.block_on(door.try_ask(request)) {
            assert_eq!(told.statuses.len(), asked);
            assert_ne!(told.overall_code(), Code::Unknown);
            assert!(told.statuses.iter().all(|status| status.code() != Code::Unknown));
        }
    });
}
