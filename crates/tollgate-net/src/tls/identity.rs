//! A certificate chain and the key that belongs to it.

use super::TlsError;
use crate::Contents;
use rustls::{
    InconsistentKeys,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject, SectionKind},
    },
    sign::CertifiedKey,
};
use std::{fmt, path::PathBuf, sync::Arc};

/// Where a certificate and its key are, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those between it and the authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A certificate that can be served: there is one, there is a key, and they belong together.
#[derive(Clone)]
pub struct Identity(pub(super) Arc<CertifiedKey>);

impl Identity {
    /// Reads both files once. Blocks.
    ///
    /// # Errors
    ///
    /// If they cannot be served; the error names the file and what is wrong with it.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Self::parse(&Contents::read(&files.cert), &Contents::read(&files.key))
    }

    /// The certificate and its key, from what a [`Watcher`](crate::Watcher) of both files told.
    ///
    /// # Errors
    ///
    /// If they cannot be served; the error names the file and what is wrong with it.
    pub fn parse(cert: &Contents, key: &Contents) -> Result<Self, TlsError> {
        let chain = chain(cert)?;
        let secret = secret(key)?;
        let signer = ring::default_provider()
            .key_provider
            .load_private_key(secret)
            .map_err(|error| TlsError::BadKey { path: key.path().into(), why: told(&error) })?;
        let certified = CertifiedKey::new(chain, signer);
        match certified.keys_match() {
            // All of ring's keys can tell; one that could not would be found out by the first client.
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                Ok(Self(Arc::new(certified)))
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(TlsError::Mismatch { cert: cert.path().into(), key: key.path().into() })
            }
            Err(error) => Err(TlsError::BadCertificate { path: cert.path().into(), why: told(&error) }),
        }
    }
}

/// Shows no key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.0.cert.len()).finish_non_exhaustive()
    }
}

fn chain(file: &Contents) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let blocks = blocks(file)?;
    let chain: Vec<CertificateDer<'static>> = blocks
        .iter()
        .filter(|(kind, _)| *kind == SectionKind::Certificate)
        .map(|(_, der)| der.clone().into())
        .collect();
    if !chain.is_empty() {
        return Ok(chain);
    }
    let has_key = blocks.iter().any(|(kind, _)| is_key(*kind));
    let hint = if has_key { "; it has a private key: are cert and key swapped?" } else { "" };
    Err(TlsError::NoCertificate { path: file.path().into(), hint })
}

fn secret(file: &Contents) -> Result<PrivateKeyDer<'static>, TlsError> {
    let blocks = blocks(file)?;
    let count = blocks.iter().filter(|(kind, _)| is_key(*kind)).count();
    if count > 1 {
        return Err(TlsError::SeveralKeys { path: file.path().into(), count });
    }
    let key = blocks.into_iter().find_map(|(kind, der)| PrivateKeyDer::from_pem(kind, der));
    key.ok_or_else(|| {
        let text = String::from_utf8_lossy(file.bytes().unwrap_or_default());
        let hint = if text.contains("BEGIN ENCRYPTED PRIVATE KEY") {
            "; this one is encrypted: decrypt it with `openssl pkey`"
        } else if text.contains("BEGIN CERTIFICATE") {
            "; it has a certificate: are cert and key swapped?"
        } else {
            ""
        };
        TlsError::NoKey { path: file.path().into(), hint }
    })
}

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

/// The blocks of a PEM file that TLS has a use for.
fn blocks(file: &Contents) -> Result<Vec<(SectionKind, Vec<u8>)>, TlsError> {
    let blocks = <(SectionKind, Vec<u8>)>::pem_slice_iter(file.bytes()?).collect::<Result<_, pem::Error>>();
    blocks.map_err(|error| TlsError::Damaged { path: file.path().into(), why: damage(&error) })
}

fn damage(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("-----END {}----- is missing", String::from_utf8_lossy(end_marker))
        }
        pem::Error::IllegalSectionStart { .. } => "a line -----BEGIN ...----- is malformed".to_owned(),
        pem::Error::Base64Decode(_) => "what stands between BEGIN and END is not base64".to_owned(),
        other => other.to_string(),
    }
}

/// What rustls says, without its preamble.
fn told(error: &rustls::Error) -> String {
    match error {
        rustls::Error::General(why) => why.clone(),
        other => other.to_string(),
    }
}
