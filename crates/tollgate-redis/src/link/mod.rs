//! How calls reach Redis: one server, one behind sentinels, or a cluster.

use redis::{Client, Cmd, Value, aio::MultiplexedConnection};
use tokio::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group(u16);

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("{why}")]
    NotSent { why: String },
    #[error("{why}")]
    Unanswered { why: String },
    #[error("{code} {message}")]
    Refused { code: String, message: String },
}

pub(crate) struct Link {
    client: Client,
    script: &'static str,
    sha: String,
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    pub(crate) fn open(url: &str, script: &'static str) -> Result<Self, redis::RedisError> {
        let sha = sha1_smol::Sha1::from(script).digest().to_string();
        Ok(Self { client: Client::open(url)?, script, sha, connection: Mutex::new(None) })
    }

    pub(crate) fn group_of(&self, _: &[u8]) -> Group {
        Group(0)
    }

    pub(crate) async fn call(&self, _: Group, keys: &[Vec<u8>], argument: &[u8]) -> Result<Value, LinkError> {
        let run = |verb: &str, script: &str| {
            let mut cmd = redis::cmd(verb);
            cmd.arg(script).arg(keys.len()).arg(keys).arg(argument);
            cmd
        };
        match self.plain(Group(0), run("EVALSHA", &self.sha)).await {
            Err(LinkError::Refused { code, .. }) if code == "NOSCRIPT" => {
                self.plain(Group(0), run("EVAL", self.script)).await
            }
            other => other,
        }
    }

    pub(crate) async fn plain(&self, _: Group, cmd: Cmd) -> Result<Value, LinkError> {
        let mut connection = {
            let mut slot = self.connection.lock().await;
            match &*slot {
                Some(connection) => connection.clone(),
                None => {
                    let made = self.client.get_multiplexed_async_connection().await;
                    let made = made.map_err(|error| LinkError::NotSent { why: error.to_string() })?;
                    slot.insert(made).clone()
                }
            }
        };
        connection.send_packed_command(&cmd).await.and_then(Value::extract_error).map_err(|error| match error
            .code()
        {
            Some(code) => LinkError::Refused { code: code.to_owned(), message: error.to_string() },
            None => LinkError::Unanswered { why: error.to_string() },
        })
    }
}
