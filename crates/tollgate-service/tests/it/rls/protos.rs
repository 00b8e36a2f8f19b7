//! The messages that are written out are those of the proto files.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use std::{fs, path::PathBuf};
use tollgate_service::rls::messages::{
    DescriptorStatus, Duration, Entry, HeaderValue, Kind, RateLimit, RateLimitDescriptor, RateLimitOverride,
    RateLimitRequest, RateLimitResponse, Struct, Value as WireValue,
};

const FILES: [&str; 4] = [
    "envoy/service/ratelimit/v3/rls.proto",
    "grpc/health/v1/health.proto",
    "grpc/reflection/v1/reflection.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proto")
}

fn compiled() -> Vec<u8> {
    let mut compiler = protox::Compiler::new([folder()]).expect("the folder is there");
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(FILES).unwrap_or_else(|error| panic!("{error:?}"));
    compiler.encode_file_descriptor_set()
}

/// With `BLESS=1` the compiled files are written.
#[test]
fn the_compiled_files_are_current() {
    let path = folder().join("descriptors.bin");
    let compiled = compiled();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &compiled).expect("writable");
    }
    let committed = fs::read(&path).expect("it is there");
    assert!(committed == compiled, "run `BLESS=1 cargo test -p tollgate-service protos`");
}

fn dynamic(name: &str, bytes: &[u8]) -> DynamicMessage {
    let pool = DescriptorPool::decode(&*compiled()).expect("whole");
    let message = pool.get_message_by_name(name).expect("it is in the files");
    DynamicMessage::decode(message, bytes).expect("it can be read")
}

fn text(message: &DynamicMessage) -> String {
    let unknown: Vec<_> = message.unknown_fields().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    message.to_text_format()
}

#[test]
fn a_request_has_the_numbers_of_the_files() {
    let request = RateLimitRequest {
        domain: "d".into(),
        descriptors: vec![RateLimitDescriptor {
            entries: vec![Entry { key: "k".into(), value: "v".into() }],
            limit: Some(RateLimitOverride { requests_per_unit: 5, unit: 2 }),
            hits_addend: Some(7),
            is_negative_hits: true,
        }],
        hits_addend: 3,
    };
    let read = dynamic("envoy.service.ratelimit.v3.RateLimitRequest", &request.encode_to_vec());
    assert_eq!(
        text(&read),
        "domain:\"d\",descriptors:[{entries:[{key:\"k\",value:\"v\"}],\
         limit{requests_per_unit:5,unit:MINUTE},hits_addend{value:7},is_negative_hits:true}],hits_addend:3"
    );
    assert_eq!(RateLimitRequest::decode(&*read.encode_to_vec()), Ok(request));
}

#[test]
fn a_response_has_the_numbers_of_the_files() {
    let number = WireValue { kind: Some(Kind::NumberValue(1.5)) };
    let response = RateLimitResponse {
        overall_code: 2,
        statuses: vec![DescriptorStatus {
            code: 2,
            current_limit: Some(RateLimit { requests_per_unit: 5, unit: 7, name: "n".into() }),
            limit_remaining: 4,
            duration_until_reset: Some(Duration { seconds: 9, nanos: 0 }),
        }],
        response_headers_to_add: vec![HeaderValue { key: "a".into(), value: "b".into(), raw_value: vec![1] }],
        request_headers_to_add: vec![HeaderValue { key: "c".into(), ..Default::default() }],
        raw_body: b"x".to_vec(),
        dynamic_metadata: Some(Struct { fields: [("f".to_owned(), number)].into() }),
    };
    let read = dynamic("envoy.service.ratelimit.v3.RateLimitResponse", &response.encode_to_vec());
    assert_eq!(
        text(&read),
        "overall_code:OVER_LIMIT,statuses:[{code:OVER_LIMIT,current_limit{requests_per_unit:5,unit:WEEK,name:\"n\"},\
         limit_remaining:4,duration_until_reset{seconds:9}}],response_headers_to_add:[{key:\"a\",value:\"b\",\
         raw_value:\"\\001\"}],request_headers_to_add:[{key:\"c\"}],raw_body:\"x\",\
         dynamic_metadata{fields:[{key:\"f\",value{number_value:1.5}}]}"
    );
    assert!(matches!(read.get_field_by_name("overall_code").as_deref(), Some(Value::EnumNumber(2))));
    assert_eq!(RateLimitResponse::decode(&*read.encode_to_vec()), Ok(response));
}
