//! What every listener of Tollgate shares: sockets that go on accepting, certificates that can be swapped, files that are
//! watched, a way to leave without dropping anybody, and a ceiling on how many may come.
//!
//! Nothing here knows a protocol, a rule or a store. A listener takes what it needs:
//!
//! - [`Listener`] binds, and accepts whatever goes wrong with single connections;
//! - [`Identity`] is a certificate with its key, [`TlsAcceptor`] shakes hands with it, and takes another while it runs;
//! - [`Watcher`] tells when files have other contents;
//! - [`ReloadRequests`] asks followers of files to read them at once, on SIGHUP;
//! - [`Drain`] is the way from serving to gone: not ready, closed, empty;
//! - [`WorkerPool`] accepts the connections of a listener and serves them with a [`ConnectionHandler`];
//! - [`Connection`] is one of them: its [`Stream`], which HTTP it speaks, and what keeps it counted;
//! - [`supervise`] ends a connection that is idle or slow, and lets it finish when the drain closes;
//! - [`Tokens`] are the words that let a client in;
//! - [`check_head`] refuses requests whose host, target or repeated headers could be read in two ways;
//! - [`is_valid_host`] checks the value of `Host` and `:authority`;
//! - [`Ceiling`] counts who is inside, and refuses above a number.
//!
//! Unix only: it asks for signals and inode numbers.

mod ceiling;
mod connection;
mod drain;
mod head;
mod host;
mod listener;
mod pattern;
mod signals;
mod tls;
mod tokens;
mod watch;
mod worker_pool;

pub use ceiling::{Ceiling, Slot};
pub use connection::{
    ActivityStream, Connection, ConnectionActivity, ConnectionGuard, ConnectionTimeouts, HttpVersion,
    RequestGuard, Stream, supervise,
};
pub use drain::{Drain, DrainTimes, Drained, Guard, Phase};
pub use head::{HeadError, check_head, check_repeated};
pub use host::is_valid_host;
pub use listener::{BindError, Listener};
pub use pattern::matching;
pub use signals::{ReloadRequests, SignalError, reload_on_hangup, stop_on_signals};
pub use tls::{HandshakeError, Identity, TlsAcceptor, TlsError, TlsFiles, TlsStream};
pub use tokens::Tokens;
pub use watch::{Contents, ReadError, Watcher};
pub use worker_pool::{
    ConnectionHandler, Gauges, PoolSettings, Scheduling, WhenFull, WorkerPool, serve_here,
};
