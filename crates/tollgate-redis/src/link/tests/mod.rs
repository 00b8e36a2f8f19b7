//! The link against real servers, and against what happens to servers and to the bytes in between.
//!
//! The script counts: a call that was executed twice, or got another's answer, cannot hide.

mod cluster;
mod connecting;
mod faults;
mod forgotten;
mod hostile;
mod sentinels;

use super::{Group, Link, LinkError, Settings, wire::Dialling};
use crate::address::Address;
use redis::Value;
use std::time::{Duration, Instant};

/// Adds one to the key, and answers with the count and the argument.
const COUNT: &str = "return {redis.call('INCR', KEYS[1]), ARGV[1]}";

pub(super) fn dialling() -> Dialling {
    Dialling { login: None, database: 0, trust: None, silent_for: Duration::from_secs(1) }
}

fn link(url: &str) -> Link {
    link_with(url, Settings::default())
}

fn link_with(url: &str, settings: Settings) -> Link {
    Link::open(Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}")), COUNT, settings)
}

impl Link {
    /// Counts up a key, and checks that the answer is the one to this very question.
    async fn count(&self, key: &str, argument: &str) -> Result<i64, LinkError> {
        let group = self.group_of(key.as_bytes());
        let value = self.call(group, &[key], argument.as_bytes()).await?;
        match value {
            Value::Array(parts) => match &parts[..] {
                [Value::Int(count), Value::BulkString(echo)] => {
                    assert_eq!(echo, argument.as_bytes(), "an answer to another question");
                    Ok(*count)
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Counts up a key until it works. Panics when that takes longer than this.
    async fn count_within(&self, patience: Duration, key: &str) -> Duration {
        let begun = Instant::now();
        loop {
            match self.count(key, "again").await {
                Ok(_) => return begun.elapsed(),
                Err(error) if begun.elapsed() > patience => panic!("still {error} after {patience:?}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    fn group(&self) -> Group {
        self.group_of(b"")
    }
}
