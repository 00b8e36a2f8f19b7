//! Responses of refusals, judged by parsers.

use http::{HeaderMap, Response, StatusCode, header::CONTENT_TYPE};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::{Decision, Retry, Status};
use tollgate_http::{HeaderStyle, Policies, Policy, RefusalStyle, is_grpc};

fn of_type(content_type: &str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())])
}

fn body(response: &Response<bytes::Bytes>) -> Value {
    serde_json::from_slice(response.body()).expect("JSON")
}

const SEVEN: Option<Duration> = Some(Duration::from_millis(6_001));

#[test]
fn a_problem_names_the_policies_and_the_time() {
    let response =
        RefusalStyle::Problem.quota_exceeded(&HeaderMap::new(), &["per-client", "a \"b\"\n"], SEVEN);
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(
        body(&response),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "Too many requests (per-client, a \"b\"\n). Please try again in 7 seconds.",
            "violated-policies": ["per-client", "a \"b\"\n"],
            "retry_after": 7,
        })
    );
}

#[test]
fn never_has_no_time_to_come_again() {
    let response = RefusalStyle::Problem.quota_exceeded(&HeaderMap::new(), &["x"], None);
    assert!(!response.headers().contains_key("retry-after"));
    assert_eq!(body(&response).get("retry_after"), None);
}

#[test]
fn an_overload_is_a_503() {
    let response = RefusalStyle::Problem.reduced_capacity(&HeaderMap::new(), SEVEN);
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let problem = body(&response);
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity");
    assert_eq!(problem["status"], 503);
    assert_eq!(problem.get("violated-policies"), None);
    assert_eq!(RefusalStyle::Soul.reduced_capacity(&HeaderMap::new(), None).status(), 503);
}

#[test]
fn souls_clients_find_what_they_know() {
    let response = RefusalStyle::Soul.quota_exceeded(&HeaderMap::new(), &["x"], SEVEN);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    assert_eq!(
        response.body(),
        r#"{"code":429,"message":"You have been restricted, please try again later!","data":null}"#
    );
}

#[test]
fn a_sentence_is_plain_text() {
    let response = RefusalStyle::Plain.quota_exceeded(&HeaderMap::new(), &[], Some(Duration::ZERO));
    assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(response.body(), "Too many requests. Please try again in 1 second.\n");
}

#[test]
fn grpc_is_told_by_the_content_type() {
    for yes in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc;charset=utf-8",
        "Application/gRPC",
        "application/grpc-web+proto",
    ] {
        assert!(is_grpc(&of_type(yes)), "{yes}");
    }
    for no in ["application/json", "application/grpcish", "application/grp", ""] {
        assert!(!is_grpc(&of_type(no)), "{no}");
    }
    assert!(!is_grpc(&HeaderMap::new()));
}

#[test]
fn grpc_gets_a_status_in_headers_alone() {
    let request = of_type("application/grpc+proto");
    for style in [RefusalStyle::Problem, RefusalStyle::Soul, RefusalStyle::Plain] {
        let response = style.quota_exceeded(&request, &["100 %"], SEVEN);
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers();
        assert_eq!(headers[CONTENT_TYPE], "application/grpc+proto");
        assert_eq!(headers["grpc-status"], "8");
        assert_eq!(headers["grpc-message"], "Too many requests (100 %25). Please try again in 7 seconds.");
        assert_eq!(headers["grpc-retry-pushback-ms"], "6001");
        assert!(response.body().is_empty());
    }
    let never = RefusalStyle::Problem.quota_exceeded(&request, &[], None);
    assert_eq!(never.headers()["grpc-retry-pushback-ms"], "-1");
    let overload = RefusalStyle::Problem.reduced_capacity(&request, SEVEN);
    assert_eq!(overload.headers()["grpc-status"], "14");
}

#[test]
fn a_set_makes_the_whole_response() {
    let policies = Policies::new(HeaderStyle::Draft10, [Policy::new("day", 1000), Policy::new("login", 5)]);
    let deny = |secs| Status::new(Decision::Deny(Retry::After(Duration::from_secs(secs))), 5, 0, None);
    let statuses = [Status::new(Decision::Allow, 1000, 10, None), deny(7)];
    let retry = Retry::After(Duration::from_secs(7));
    let response = policies.refusal(RefusalStyle::Problem, &HeaderMap::new(), policies.all(&statuses), retry);
    assert_eq!(response.headers()["ratelimit"], r#""login";r=0;t=7"#);
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(body(&response)["violated-policies"], json!(["login"]));
}

proptest! {
    #[test]
    fn any_names_make_valid_responses(
        names in prop::collection::vec(any::<String>(), 0..4),
        after in any::<Option<Duration>>(),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let response = RefusalStyle::Problem.quota_exceeded(&HeaderMap::new(), &names, after);
        let problem = body(&response);
        prop_assert_eq!(&problem["violated-policies"], &json!(names));
        prop_assert_eq!(problem.get("retry_after").is_none(), after.is_none());
        let told = response.headers().get("retry-after").map(|it| it.to_str().unwrap().parse::<u64>().unwrap());
        prop_assert_eq!(problem.get("retry_after").and_then(Value::as_u64), told);
        prop_assert!(told.zip(after).is_none_or(|(told, after)| told >= after.as_secs().max(1)));

        // Percent signs and digits give the message back.
        let response = RefusalStyle::Problem.quota_exceeded(&of_type("application/grpc"), &names, after);
        let mut message = Vec::new();
        let mut bytes = response.headers()["grpc-message"].as_bytes().iter();
        while let Some(byte) = bytes.next() {
            prop_assert!((b' '..=b'~').contains(byte));
            let digits = (*byte == b'%').then(|| [*bytes.next().unwrap(), *bytes.next().unwrap()]);
            let decoded = digits.map(|two| u8::from_str_radix(std::str::from_utf8(&two).unwrap(), 16).unwrap());
            message.push(decoded.unwrap_or(*byte));
        }
        let message = String::from_utf8(message).expect("UTF-8");
        prop_assert!(names.iter().all(|name| message.contains(name)));
    }
}
