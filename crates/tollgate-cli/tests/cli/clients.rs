//! Clients that people use, against the running program: curl, wrk, h2load, a gRPC client.

use crate::served::{Served, curl};
use std::process::Command;
use testkit::{Canned, Upstream};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

fn rules(upstream: &str, limit: &str) -> String {
    format!(
        "
upstreams: {{ app: {{ servers: [ \"{upstream}\" ] }} }}
routes:
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: all, limits: [ {{ {limit}, key: [] }} ] }} ]
"
    )
}

#[test]
fn curl_is_served_over_both_versions_of_http_and_told_when_to_come_back() {
    let upstream = Upstream::start(|asked| Canned::text(format!("{} bytes", asked.body.len())));
    let served = Served::start(&rules(&upstream.url(), "fixed_window: { limit: 3, window: 1h }"));
    let url = format!("http://{}/up", served.gateway);
    assert_eq!(curl(&["-s", "-d", "hello", &url]), "5 bytes");
    let two = curl(&["-s", "--http2-prior-knowledge", "-w", " by %{http_version}", "-d", "hello!", &url]);
    assert_eq!(two, "6 bytes by 2");
    let chunked = curl(&["-s", "-H", "transfer-encoding: chunked", "-d", "hi", &url]);
    assert_eq!(chunked, "2 bytes");
    let refused = curl(&["-si", "--http2-prior-knowledge", &url]);
    assert!(refused.starts_with("HTTP/2 429"), "{refused}");
    assert!(refused.contains("retry-after: ") && refused.contains("ratelimit: \"all\";r=0;t="), "{refused}");
    assert_eq!(served.metric("rule=\"all\",outcome=\"reject\""), 1.0);
}

#[test]
fn wrk_and_h2load_get_what_the_limit_gives_and_not_one_more() {
    let upstream = Upstream::ok();
    let served = Served::start(&rules(&upstream.url(), "fixed_window: { limit: 500, window: 1d }"));
    let url = format!("http://{}/", served.gateway);
    let load = Command::new("h2load").args(["-n", "400", "-c", "4", "-m", "8", &url]).output();
    let load = String::from_utf8_lossy(&load.expect("h2load is installed by the set-up").stdout).into_owned();
    assert!(load.contains("400 succeeded") && load.contains("status codes: 400 2xx"), "{load}");
    let wrk = Command::new("wrk").args(["-t", "1", "-c", "8", "-d", "1", &url]).output();
    let wrk = String::from_utf8_lossy(&wrk.expect("wrk is installed by the set-up").stdout).into_owned();
    assert!(wrk.contains("Non-2xx"), "{wrk}");
    assert_eq!(served.metric("status_class=\"2xx\""), 500.0);
    assert_eq!(upstream.asked().len(), 500);
    testkit::eventually("nothing is left in flight", || {
        (served.metric("tollgate_in_flight") == 0.0).then_some(())
    });
}

#[test]
fn a_grpc_client_gets_its_answer_and_a_status_it_understands_when_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_service_status("app", tonic_health::ServingStatus::Serving).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("h2c://{}", listener.local_addr().unwrap());
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let serving = tonic::transport::Server::builder().add_service(health).serve_with_incoming(incoming);
        tokio::spawn(serving);

        let served = Served::start(&rules(&upstream, "fixed_window: { limit: 2, window: 1h }"));
        let gateway = tonic::transport::Endpoint::from_shared(format!("http://{}", served.gateway)).unwrap();
        let mut client = HealthClient::new(gateway.connect().await.unwrap());
        let question = || HealthCheckRequest { service: "app".to_owned() };
        assert_eq!(client.check(question()).await.unwrap().into_inner().status, 1);
        let nobody = HealthCheckRequest { service: "nobody".to_owned() };
        let unknown = client.check(nobody).await.expect_err("the service does not know it");
        assert_eq!(unknown.code(), tonic::Code::NotFound, "a status in trailers comes through");
        let refused = client.check(question()).await.expect_err("there were two");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    });
}
