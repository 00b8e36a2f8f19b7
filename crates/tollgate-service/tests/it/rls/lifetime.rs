//! On the way out health says no first; what was begun is finished; then nobody is left.

use super::stage::{Client, Open, SHOULD_RATE_LIMIT, descriptor, frame, request};
use bytes::{Bytes, BytesMut};
use std::time::Duration;
use tokio::time::timeout;

const DOMAIN: &str =
    "domain: d\ndescriptors: [ { key: k, rate_limit: { unit: hour, requests_per_unit: 9 } } ]";

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn health_flips_before_the_listener_closes_and_calls_under_way_are_answered() {
    let open = Open::start(DOMAIN, |_| ());
    let client = open.client().await;
    let asked = request([descriptor(&[("k", "v")])]);

    // One who watches, and one whose message is not there yet.
    let mut sender = client.sender.clone().ready().await.expect("ready");
    let (watch, mut watching) =
        sender.send_request(Client::head("/grpc.health.v1.Health/Watch"), false).expect("sent");
    watching.send_data(frame(&String::new()), true).expect("sent");
    let mut watch = watch.await.expect("it began").into_body();
    let mut heard = BytesMut::new();
    heard.extend_from_slice(&watch.data().await.expect("a piece").expect("whole"));
    assert_eq!(&heard[..], &[0, 0, 0, 0, 2, 8, 1], "serving");
    let mut sender = client.sender.clone().ready().await.expect("ready");
    let (late, mut message) = sender.send_request(Client::head(SHOULD_RATE_LIMIT), false).expect("sent");
    let body = frame(&asked);
    message.send_data(body.slice(..4), false).expect("sent");

    let drain = open.drain.clone();
    drain.begin();
    let drained = tokio::spawn(async move { drain.run().await });
    let piece = timeout(LONG, watch.data()).await.expect("in time").expect("a piece").expect("whole");
    assert_eq!(&piece[..], &[0, 0, 0, 0, 2, 8, 2], "no longer");
    // Everything is served still, to those who come now too.
    let newcomer = open.client().await;
    assert!(newcomer.ask(&asked).await.is_ok(), "health says no before the listener closes");
    let ended = newcomer
        .call(Client::head("/grpc.health.v1.Health/Check"), frame(&String::new()))
        .await
        .expect("an end");
    assert_eq!(&ended.messages[..], &[0, 0, 0, 0, 2, 8, 2]);

    let is_closed = || async { tokio::net::TcpStream::connect(open.address).await.err() };
    testkit::eventually_async("the listener to close", is_closed).await;
    message.send_data(body.slice(4..), true).expect("sent");
    let late = timeout(LONG, late).await.expect("in time").expect("an answer");
    let mut late = late.into_body();
    assert!(late.data().await.expect("a message").is_ok());
    assert_eq!(late.trailers().await.expect("an end").expect("trailers")["grpc-status"], "0");
    drop((late, watch, message, watching));
    let drained = timeout(LONG, drained).await.expect("in time").expect("it ends");
    assert_eq!(drained, tollgate_net::Drained::Empty, "nobody was cut off");
}

#[tokio::test]
async fn a_connection_that_is_gone_leaves_nothing() {
    let open = Open::start(DOMAIN, |_| ());
    for _ in 0..20 {
        let client = open.client().await;
        let mut sender = client.sender.clone().ready().await.expect("ready");
        let (_, mut stream) = sender.send_request(Client::head(SHOULD_RATE_LIMIT), false).expect("sent");
        stream.send_data(Bytes::from_static(&[0]), false).expect("sent");
    }
    let drain = open.drain.clone();
    drain.begin();
    let drained = timeout(LONG, drain.run()).await.expect("in time");
    assert_eq!(drained, tollgate_net::Drained::Empty);
}
