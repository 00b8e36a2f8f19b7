//! What can be wrong with a certificate or a key, in terms of the files somebody has to mend.

use crate::ReadError;
use std::path::PathBuf;

/// A certificate and a key that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// One of the files could not be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The file with the certificate has none.
    #[error("{} has no certificate: a block that begins with -----BEGIN CERTIFICATE----- is expected{hint}", .path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
        /// What it has instead, if that tells something.
        hint: &'static str,
    },
    /// The file with the key has none.
    #[error("{} has no private key: a block such as -----BEGIN PRIVATE KEY----- is expected{hint}", .path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// What it has instead, if that tells something.
        hint: &'static str,
    },
    /// The file with the key has more than one.
    #[error("{} has {count} private keys; leave the one that belongs to the certificate", .path.display())]
    SeveralKeys {
        /// The file.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// A block that should be PEM is not.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A certificate that is none inside.
    #[error("the first certificate in {} cannot be used: {why}", .path.display())]
    BadCertificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A key of a kind that is not supported, or that is none inside.
    #[error("the private key in {} cannot be used: {why} (RSA of 2048 bits or more, ECDSA P-256 or P-384, Ed25519)", .path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The key of another certificate.
    #[error("the private key in {} does not belong to the first certificate in {}", .key.display(), .cert.display())]
    Mismatch {
        /// The file with the certificate.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
}
