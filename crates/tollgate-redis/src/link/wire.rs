//! One connection, from dialling to its end.
//!
//! The socket, TLS, the login and the end are ours; what is in between, putting calls onto one connection and handing out the
//! answers in order, is `redis::aio::MultiplexedConnection`. It is driven by a task of ours, the **pump**, which also looks
//! for silence. A caller that stops waiting leaves its answer to the pump, so nobody gets another's.
//!
//! Why not let the redis crate connect: it leaves Nagle's algorithm on, hides what the server said about a password, takes
//! whichever TLS provider the process has, and would keep the stream from us.

use super::{
    error::LinkError,
    pulse::{Felt, Pulse, Silence, Waiting},
    tls::Trust,
};
use crate::address::{Host, Login};
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, Value, aio::MultiplexedConnection};
use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
    task::{AbortHandle, JoinHandle},
    time::{MissedTickBehavior, interval},
};

/// What every connection of a link is made with.
#[derive(Debug)]
pub(super) struct Dialling {
    pub(super) login: Option<Login>,
    pub(super) database: u32,
    pub(super) trust: Option<Trust>,
    /// How long an answer may be owed in silence.
    pub(super) silent_for: Duration,
}

/// A connection that is up, or was.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) peer: Host,
    connection: MultiplexedConnection,
    pulse: Arc<Pulse>,
    pump: AbortHandle,
    retired: Notify,
    /// How often the script's text was sent here.
    texts: AtomicU64,
}

/// Runs until the connection is over.
pub(super) type Pump = JoinHandle<()>;

/// Calls that stand in front of the socket before callers have to queue for a place.
const QUEUE: usize = 1024;

impl Dialling {
    /// Connects and logs in.
    pub(super) async fn dial(&self, peer: &Host) -> Result<(Wire, Pump), String> {
        let at = |error: &dyn std::fmt::Display| format!("{peer}: {error}");
        let connected = TcpStream::connect((peer.name.as_str(), peer.port)).await;
        let stream = connected.map_err(|error| at(&error))?;
        // A call is one small write that must not wait for the answer to the one before.
        stream.set_nodelay(true).map_err(|error| at(&error))?;
        let (wire, pump) = match &self.trust {
            None => Wire::over(stream, peer, self.silent_for).await,
            Some(trust) => {
                let stream = trust.shake_hands(&peer.name, stream).await.map_err(|error| at(&error))?;
                Wire::over(stream, peer, self.silent_for).await
            }
        }?;
        wire.log_in(self.login.as_ref(), self.database).await.map_err(|error| at(&error))?;
        Ok((wire, pump))
    }
}

impl Wire {
    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: &Host,
        silent_for: Duration,
    ) -> Result<(Self, Pump), String> {
        let pulse = Arc::new(Pulse::default());
        let stream = Felt::new(stream, Arc::clone(&pulse));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        let silent_login = RedisConnectionInfo::default().set_skip_set_lib_name();
        let made = MultiplexedConnection::new_with_config(&silent_login, stream, config).await;
        let (connection, driver) = made.map_err(|error| error.to_string())?;
        let pump = tokio::spawn(pump(driver, Arc::clone(&pulse), silent_for));
        let wire = Self {
            peer: peer.clone(),
            connection,
            pulse,
            pump: pump.abort_handle(),
            retired: Notify::new(),
            texts: AtomicU64::new(0),
        };
        Ok((wire, pump))
    }

    /// All in one round trip.
    async fn log_in(&self, login: Option<&Login>, database: u32) -> Result<(), String> {
        let mut steps = redis::pipe();
        let mut meanings = Vec::new();
        if let Some(Login { user, password }) = login {
            steps.cmd("AUTH").arg(user.as_deref()).arg(password);
            let user = user.as_deref().unwrap_or("default");
            meanings.push(format!("the server refused the login of user `{user}`"));
        }
        if database != 0 {
            steps.cmd("SELECT").arg(database);
            meanings.push(format!("the server refused database {database}"));
        }
        // Shows that somebody answers at all, and lets us in.
        steps.cmd("PING");
        // For whoever lists a server's clients.
        steps.cmd("CLIENT").arg("SETNAME").arg("tollgate");
        let needed = meanings.len();
        let answers = self.send_all(&steps, needed + 2).await.map_err(|error| error.to_string())?;
        let refusal = |answer: &Value| match answer {
            Value::ServerError(error) => {
                Some(format!("{} {}", error.code(), error.details().unwrap_or_default()))
            }
            _ => None,
        };
        for (answer, meaning) in answers.iter().zip(meanings) {
            if let Some(refusal) = refusal(answer) {
                return Err(format!("{meaning}: {refusal}"));
            }
        }
        match answers.get(needed) {
            // A user that may not PING, or a server that cannot answer yet: connected all the same.
            Some(Value::ServerError(error))
                if matches!(error.code(), "NOPERM" | "LOADING" | "MASTERDOWN" | "BUSY") =>
            {
                Ok(())
            }
            Some(answer) => {
                refusal(answer).map_or(Ok(()), |refusal| Err(format!("the server refused us: {refusal}")))
            }
            None => Err("the server left questions unanswered".to_owned()),
        }
    }

    /// Sends a command and waits for its answer.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, LinkError> {
        let _waiting = self.enter()?;
        match self.connection.clone().send_packed_command(command).await {
            Ok(Value::ServerError(error)) => Err(LinkError::refused(&error)),
            Ok(value) => Ok(value),
            Err(error) => Err(self.unanswered(&error)),
        }
    }

    /// The same after ASKING, which holds for the very next command only: the two must not be parted.
    pub(super) async fn send_asking(&self, command: &Cmd) -> Result<Value, LinkError> {
        let mut both = redis::pipe();
        both.cmd("ASKING").add_command(command.clone());
        match self.send_all(&both, 2).await?.pop() {
            Some(Value::ServerError(error)) => Err(LinkError::refused(&error)),
            Some(value) => Ok(value),
            None => Err(LinkError::Unanswered { why: "no answer after ASKING".into() }),
        }
    }

    async fn send_all(&self, commands: &redis::Pipeline, count: usize) -> Result<Vec<Value>, LinkError> {
        let _waiting = self.enter()?;
        let answers = self.connection.clone().send_packed_commands(commands, 0, count).await;
        answers.map_err(|error| self.unanswered(&error))
    }

    fn enter(&self) -> Result<Waiting<'_>, LinkError> {
        match self.pulse.is_open() {
            true => Ok(self.pulse.wait()),
            false => Err(LinkError::not_sent(self.ending())),
        }
    }

    /// What was handed over and came back as an error may have been written: nobody can tell any more. Nor is there an error
    /// that a connection survives.
    fn unanswered(&self, error: &redis::RedisError) -> LinkError {
        self.pulse.end(match error.kind() {
            redis::ErrorKind::Parse => "the server sent what is no answer",
            _ => CLOSED,
        });
        LinkError::Unanswered { why: self.ending().into() }
    }

    /// How often the script's text was sent here so far.
    pub(super) fn texts(&self) -> u64 {
        self.texts.load(Relaxed)
    }

    /// Whether it falls to whoever saw the text sent `seen` times to send it again: to one of all who ask.
    pub(super) fn claim_text(&self, seen: u64) -> bool {
        self.texts.compare_exchange(seen, seen + 1, Relaxed, Relaxed).is_ok()
    }

    pub(super) fn is_open(&self) -> bool {
        self.pulse.is_open()
    }

    /// How often something was read.
    pub(super) fn reads(&self) -> u64 {
        self.pulse.reads()
    }

    pub(super) fn ending(&self) -> &'static str {
        self.pulse.ending().unwrap_or(CLOSED)
    }

    /// Takes no more calls. Those under way get their answers, and then it closes by itself.
    pub(super) fn retire(&self, why: &'static str) {
        self.pulse.end(why);
        self.retired.notify_one();
    }

    /// Closes it now, whoever waits.
    pub(super) fn cut(&self, why: &'static str) {
        self.pulse.end(why);
        self.pump.abort();
    }

    pub(super) async fn retired(&self) {
        self.retired.notified().await;
    }
}

const CLOSED: &str = "the connection was closed";

/// So often, in the time a connection may be silent, is looked whether it is.
const LOOKS: u32 = 4;

/// Moves bytes until the connection is over, or silent for too long.
async fn pump(driver: impl Future<Output = ()>, pulse: Arc<Pulse>, silent_for: Duration) {
    let mut driver = pin!(driver);
    // Dropped before the driver is, which gives up the callers that still wait: they find the reason.
    let _end = End(&pulse);
    let mut silence = Silence::default();
    let mut look = interval((silent_for / LOOKS).max(Duration::from_millis(1)));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    poll_fn(|cx| {
        if driver.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        while look.poll_tick(cx).is_ready() {
            // One more, because the first may come right after the question.
            if silence.look(&pulse) > LOOKS {
                pulse.end("the server stopped answering");
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

struct End<'a>(&'a Pulse);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end(CLOSED);
    }
}
