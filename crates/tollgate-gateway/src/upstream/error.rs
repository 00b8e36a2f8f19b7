//! Why an upstream cannot be made of what a rule file says. The reader of the file has checked nearly all of it.

/// An upstream cannot be made of these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// A server's URL cannot be used.
    #[error("{url}: {reason}")]
    Url {
        /// As it was written.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// TLS cannot be used at all.
    #[error("TLS to upstreams cannot be set up: {reason}")]
    Tls {
        /// What was said.
        reason: String,
    },
}
