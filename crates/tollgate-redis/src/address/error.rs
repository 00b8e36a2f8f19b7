//! What can be wrong with an address, and what to write instead. Nothing of the text itself is repeated.

use super::{OPTIONS, SCHEMES};

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AddressError {
    /// There is no `://`.
    #[error("no scheme: write the address as redis://host:6379")]
    NoScheme,
    /// It begins with a word that is none of ours.
    #[error("unknown scheme: the nearest is `{nearest}://`; there are {}", SCHEMES.join(", "))]
    UnknownScheme {
        /// The scheme most like it.
        nearest: &'static str,
    },
    /// A host is empty.
    #[error("host {place} is empty: write host or host:port, several separated by commas")]
    NoHost {
        /// Which of them, counted from one.
        place: usize,
    },
    /// A host has characters that no host has.
    #[error(
        "host {place} is not a host name: letters, digits, `-`, `_` and `.`, or an IPv6 address in [brackets]"
    )]
    BadHost {
        /// Which of them, counted from one.
        place: usize,
    },
    /// What follows a host's colon is no port.
    #[error(
        "the port of host {place} is not a number from 1 to 65535 (a password stands in front of an `@`)"
    )]
    BadPort {
        /// Which of them, counted from one.
        place: usize,
    },
    /// Several hosts where one is meant.
    #[error("{count} hosts for one server: use redis-cluster:// or redis-sentinel:// for several")]
    ManyHosts {
        /// How many there are.
        count: usize,
    },
    /// Something in front of the `@`, but no colon in it.
    #[error("no password in front of the `@`: write user:password@ or :password@")]
    NoPassword,
    /// A sign with a meaning of its own stands where it has none.
    #[error(
        "a `@` after the hosts: write `/` as %2F, `?` as %3F and `@` as %40 in a password, a path or a name"
    )]
    Unescaped,
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are no text.
    #[error(
        "a `%` in the {part} is not followed by two hexadecimal digits that make UTF-8: write `%` itself as %25"
    )]
    BadEscape {
        /// Where it is.
        part: &'static str,
    },
    /// Sentinels without the name they know the servers by.
    #[error(
        "no name of the primary: write redis-sentinel://host:26379/name, as in `sentinel monitor name ..`"
    )]
    NoPrimary,
    /// The last part of the path is no number.
    #[error("the database is not a number from 0 to 65535: write it as /0")]
    BadDatabase,
    /// A database other than 0, on a cluster.
    #[error("a cluster has one database: leave /{database} out")]
    DatabaseOnCluster {
        /// The one asked for.
        database: u32,
    },
    /// A path with more parts than there is use for.
    #[error("the path has more parts than {expected}")]
    LongPath {
        /// What there may be.
        expected: &'static str,
    },
    /// An option that nobody knows.
    #[error("unknown option in place {place}: the nearest is `{nearest}`; there are {}", OPTIONS.join(", "))]
    UnknownOption {
        /// Which of them, counted from one.
        place: usize,
        /// The option most like it.
        nearest: &'static str,
    },
    /// An option that is given twice, or without a value.
    #[error("option `{name}` needs one value: write {name}=value, once")]
    NotOneValue {
        /// The option.
        name: &'static str,
    },
    /// An option that says nothing with this scheme.
    #[error("option `{name}` means nothing here: it needs {needs}")]
    MisplacedOption {
        /// The option.
        name: &'static str,
        /// What would give it a meaning.
        needs: &'static str,
    },
}
