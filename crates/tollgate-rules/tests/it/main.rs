//! The rule file from outside.

mod agreement;
mod build;
mod explaining;
mod keying;
mod matching;
mod operators;
mod oracle;
