//! Tokens: what somebody shows to be let in.
//!
//! A token is 256 random bits, so nobody finds it by trying, and a plain hash of it is enough at rest: there is nothing to
//! guess that a slow hash would protect. What is compared are hashes, in constant time.

use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use std::fmt::Write;
use subtle::ConstantTimeEq;
use tollgate_rules::model::TokenHash;

/// A new token and how a rule file knows it: `tg_...` and `sha256:...`.
///
/// # Errors
/// Where the system has no random numbers to give.
pub fn fresh_token() -> Result<(String, String), NoRandomness> {
    let token = format!("tg_{}", digits(&random()?));
    let line = format!("sha256:{}", digits(&hash(&token).0));
    Ok((token, line))
}

/// The system has no random numbers to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers to give")]
pub struct NoRandomness;

/// 256 random bits.
pub(super) fn random() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// In hexadecimal.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What a file would know it by.
pub(super) fn hash(token: &str) -> TokenHash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    TokenHash(bytes)
}

/// Whether they are the same, in a time that does not tell how nearly.
pub(super) fn same(one: &TokenHash, other: &TokenHash) -> bool {
    one.0.ct_eq(&other.0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_token_is_known_by_its_line_and_no_two_are_alike() {
        let (token, line) = fresh_token().expect("random numbers");
        assert_eq!(line, format!("sha256:{}", digits(&hash(&token).0)));
        assert_ne!(token, fresh_token().expect("random numbers").0);
        assert!(same(&hash(&token), &hash(&token)) && !same(&hash(&token), &hash(&line)));
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(format!("sha256:{}", digits(&hash("abc").0)), known);
    }
}
