//! TLS for listeners: rustls on ring, named here and nowhere installed, so that a program with another provider keeps it.
//!
//! Parsing is apart from serving. An [`Identity`] is a certificate chain with the key that belongs to it: if it exists, it
//! can be served, and a renewed file that is half of a pair is found out before anybody is offered it. A [`TlsAcceptor`] shakes
//! hands with the identity it was given last; connections that stand keep theirs.
//!
//! It does not ask clients for certificates, and does not look at how long a certificate is valid: clients do.

mod acceptor;
mod error;
mod identity;

pub use acceptor::{HandshakeError, TlsAcceptor, TlsStream};
pub use error::TlsError;
pub use identity::{Identity, TlsFiles};
