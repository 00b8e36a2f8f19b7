//! Books from outside: one suite over every database, on real servers; the rule file as a book; somebody else's table.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod changing;
mod conf;
mod files;
mod home;
mod migrating;
mod outage;
