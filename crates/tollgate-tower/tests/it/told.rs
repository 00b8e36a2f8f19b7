//! What clients are told.

use crate::stage::{bucket, done, layer, request, slots, status, store, with_header};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use proptest::prelude::*;
use sfv::{List, ListEntry, Parser};
use std::time::Duration;
use tokio::time::advance;
use tollgate::{FixedWindow, Limit, Rate, SlidingLog, TokenBucket};
use tollgate_tower::{Cause, HeaderStyle, LayerLimit, LimitLayer, Missing, RefusalStyle};
use tower::{Layer, ServiceExt, service_fn};

/// A list field's items: each a name and a number.
fn items(headers: &HeaderMap, field: &str, parameter: &str) -> Vec<(String, Option<i64>)> {
    let lines: Vec<_> = headers.get_all(field).iter().map(|line| line.as_bytes()).collect();
    let list: List = Parser::new(&lines.join(&b","[..])).parse().expect("a list of structured fields");
    let item = |entry| {
        let ListEntry::Item(item) = entry else { panic!("an item") };
        let number = item.params.get(parameter).map(|it| it.as_integer().unwrap().into());
        (item.bare_item.as_string().unwrap().as_str().to_owned(), number)
    };
    list.into_iter().map(item).collect()
}

async fn text<B: Body<Error: std::fmt::Debug>>(response: Response<B>) -> String {
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_passes_and_what_does_not_are_told() {
    let tolls = [
        LayerLimit::new("burst", bucket(1, 2)),
        LayerLimit::new("day", FixedWindow::new(10, Duration::from_secs(86_400)).unwrap()),
        LayerLimit::new("in-flight", slots(5, 0)),
    ];
    let service = LimitLayer::in_store(&store(), tolls).unwrap().layer(service_fn(done));
    let response = service.clone().oneshot(request()).await.unwrap();
    let headers = response.headers();
    let named = |numbers: [Option<i64>; 3]| {
        ["burst", "day", "in-flight"].map(String::from).into_iter().zip(numbers).collect::<Vec<_>>()
    };
    assert_eq!(items(headers, "ratelimit-policy", "q"), named([Some(2), Some(10), Some(5)]));
    assert_eq!(items(headers, "ratelimit-policy", "w"), named([Some(2), Some(86_400), None]));
    assert_eq!(items(headers, "ratelimit", "r"), named([Some(1), Some(9), Some(4)]));
    assert!(!headers.contains_key("retry-after"));
    drop(response);

    assert_eq!(status(&service, request()).await, 200);
    let refused = service.clone().oneshot(request()).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(items(refused.headers(), "ratelimit", "t"), [("burst".to_owned(), Some(1))]);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["content-type"], "application/problem+json");
    assert_eq!(refused.body().size_hint().exact(), Some(text(refused).await.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn headers_and_refusals_as_the_layer_says() {
    let it = layer(bucket(1, 1)).headers(HeaderStyle::XRateLimit).refusal(RefusalStyle::Soul);
    let service = it.clone().layer(service_fn(done));
    let passed = service.clone().oneshot(request()).await.unwrap();
    assert_eq!(passed.headers()["x-ratelimit-remaining"], "0");
    assert!(!passed.headers().contains_key("ratelimit"));
    let refused = service.clone().oneshot(request()).await.unwrap();
    assert!(text(refused).await.contains(r#""code":429"#));
    let silent = it.headers(HeaderStyle::None).layer(service_fn(done)).oneshot(request()).await.unwrap();
    assert_eq!(
        silent.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["content-type", "retry-after"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_ones_own_words() {
    let it = layer(bucket(1, 1)).by_header("x-api-key").missing(Missing::Deny).on_refusal(|refusal| {
        let words = format!(
            "{:?} {} {:?} {:?}",
            refusal.cause(),
            refusal.request().uri.path(),
            refusal.violated(),
            refusal.retry_after()
        );
        assert_eq!(refusal.response().status(), 429);
        let mut response = Response::new(words.into());
        *response.status_mut() = http::StatusCode::IM_A_TEAPOT;
        response
    });
    let service = it.layer(service_fn(done));
    assert_eq!(status(&service, with_header("x-api-key", "a")).await, 200);
    let refused = service.clone().oneshot(with_header("x-api-key", "a")).await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (418, &"1".parse().unwrap()));
    assert_eq!(text(refused).await, r#"Limit / ["default"] Some(1s)"#);
    let refused = service.oneshot(request()).await.unwrap();
    assert!(!refused.headers().contains_key("retry-after"));
    assert_eq!(text(refused).await, r#"MissingKey / ["default"] None"#);
}

#[tokio::test(start_paused = true)]
async fn a_limit_removed_by_hand_is_not_a_limit_without_an_end() {
    let store = store();
    let layer = LimitLayer::in_store(&store, [LayerLimit::new("gone", bucket(1, 1))]).unwrap();
    store.remove(layer.handle(&store, "gone").unwrap()).unwrap();
    let undecided = |layer: LimitLayer| {
        let service = layer
            .on_refusal(|refusal| {
                assert!(matches!(refusal.cause(), Cause::Undecided(_)));
                refusal.response()
            })
            .layer(service_fn(done));
        async move { status(&service, request()).await }
    };
    assert_eq!(undecided(layer.clone()).await, 503);
    assert_eq!(undecided(layer.wait(Duration::from_secs(1))).await, 503);
}

#[tokio::test(start_paused = true)]
async fn grpc_gets_its_own_status() {
    let service = layer(TokenBucket::new(Rate::per_minute(60).unwrap(), 1).unwrap()).layer(service_fn(done));
    let grpc = || with_header("content-type", "application/grpc");
    assert_eq!(status(&service, grpc()).await, 200);
    advance(Duration::from_micros(400_500)).await;
    let refused = service.clone().oneshot(grpc()).await.unwrap();
    assert_eq!(refused.status(), 200);
    let headers = refused.headers();
    assert_eq!(headers["grpc-status"], "8");
    assert_eq!(headers["content-type"], "application/grpc");
    assert_eq!(headers["grpc-retry-pushback-ms"], "600");
    assert!(refused.body().is_end_stream(), "all of it is in the headers");
}

/// Limits that make their clients wait for seconds and minutes.
fn limits() -> impl Strategy<Value = Limit> {
    let window = || (1..100_000_u64).prop_map(Duration::from_millis);
    prop_oneof![
        (1..100_u64, window(), 1..5_u32)
            .prop_map(|(units, period, burst)| TokenBucket::new(Rate::new(units, period).unwrap(), burst)),
    ]
    .prop_map(|it| it.unwrap().into())
    .boxed()
    .prop_union(
        (1..5_u32, window())
            .prop_map(|(limit, window)| Limit::from(FixedWindow::new(limit, window).unwrap()))
            .boxed(),
    )
    .or((1..5_u32, window())
        .prop_map(|(limit, window)| Limit::from(SlidingLog::new(limit, window).unwrap()))
        .boxed())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A hint that is rounded down sends clients too early (a layer of old said `Retry-After: 0`).
    #[test]
    fn a_retry_at_retry_after_passes(
        limits in prop::collection::vec(limits(), 1..4),
        wait in prop::option::of((0..3_000_u64).prop_map(Duration::from_millis)),
        pauses in prop::collection::vec(0..5_000_u64, 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let tolls = limits.into_iter().enumerate().map(|(index, limit)| LayerLimit::new(format!("limit {index}"), limit));
            let layer = LimitLayer::in_store(&store(), tolls).unwrap();
            let layer = wait.map_or(layer.clone(), |wait| layer.wait(wait));
            let service = layer.layer(service_fn(done));
            for pause in pauses {
                advance(Duration::from_millis(pause)).await;
                let response = service.clone().oneshot(Request::new(())).await.unwrap();
                if response.status() == 200 {
                    continue;
                }
                let seconds: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
                prop_assert!(seconds >= 1);
                for (name, next) in items(response.headers(), "ratelimit", "t") {
                    prop_assert!(next.is_some_and(|next| next as u64 <= seconds), "{name}: {next:?} and {seconds}");
                }
                advance(Duration::from_secs(seconds)).await;
                prop_assert_eq!(status(&service, Request::new(())).await, 200);
            }
            Ok(())
        })?;
    }
}
