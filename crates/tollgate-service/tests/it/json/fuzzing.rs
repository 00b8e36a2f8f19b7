//! Bodies that nobody thought of.

use super::stage::memory;
use std::{io::Write, path::PathBuf};
use testkit::Fuzz;

#[test]
fn whatever_is_sent_gets_an_answer_and_the_door_stays_open() {
    const PATHS: [&str; 6] = ["/v1/check", "/v1/peek", "/v1/refund", "/v1/reset", "/v1/wait", "/v1/permits"];
    let (stage, clock) = memory();
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/json");
    let mut client = stage.client();
    let inputs = Fuzz::from(corpus).run(|input, random| {
        clock.advance(std::time::Duration::from_secs(1));
        let mut body = input.to_vec();
        // Nobody moves the clock for those who wait.
        while let Some(at) = body.windows(9).position(|word| word == b"up_to_ms\"") {
            body[at] = b'U';
        }
        let path = PATHS[random.below(PATHS.len())];
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        client.stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).expect("sent");
        let told = client.told().expect("an answer");
        assert!([200, 201, 204, 400, 404, 409, 429, 503].contains(&told.status), "{told:?}");
        if told.status == 400 || told.status == 404 {
            assert!(!told.detail().is_empty());
        } else if told.status != 204 {
            told.json();
        }
    });
    assert!(inputs > 100, "{inputs}");
}
