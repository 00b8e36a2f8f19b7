//! HTTP/1.1 to a server: one exchange at a time on a connection that is kept.
//!
//! hyper's client is a task beside the connection, with channels for requests, answers and bodies. A gateway needs none
//! of that: whoever waits for the answer can write the request and read the answer itself. So an exchange is polled by
//! the task of the client's connection, and costs one write and one read. It is also known exactly whether a byte of the
//! request was ever sent, which decides whether it may be sent again.
//!
//! Strict about answers, since what two ends read differently can be used to smuggle: see [`head`] for what is refused.

mod connection;
mod download;
mod encode;
mod exchange;
mod head;
mod upload;

pub(crate) use connection::Connection;
pub(crate) use download::Download;
pub(crate) use exchange::{Answer, Failed, Outbound, Spent, exchange, word};
