//! Where Redis is, as one line of text.
//!
//! ```text
//! redis://[user:password@]host[:6379][/database]              one server; rediss:// with TLS
//! redis-sentinel://[..@]host[:26379],host,../primary[/database]
//! redis-cluster://[..@]host[:6379],host,..
//! ```
//!
//! The other two speak TLS as `rediss-sentinel` and `rediss-cluster`. Options follow a `?`: `ca=/path/ca.pem` trusts that
//! authority instead of the system's (TLS only); `sentinel-user` and `sentinel-password` are the sentinels' own login, since
//! they seldom share the servers'.
//!
//! Nothing is looked up here. No part of the text that may be a password is ever printed, in an error neither: so a port that
//! is none is not shown, because it is what follows the colon where somebody forgot the `@`.

mod error;
#[cfg(test)]
mod tests;

pub(crate) use error::AddressError;
use std::{fmt, path::PathBuf};
use strsim::levenshtein;

/// Where Redis is and how to log in there. Prints without its passwords.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) servers: Servers,
    pub(crate) login: Option<Login>,
    pub(crate) database: u32,
    pub(crate) tls: Option<Tls>,
}

/// How the servers are arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Servers {
    One(Host),
    Sentinels { sentinels: Vec<Host>, primary: String, login: Option<Login> },
    Cluster(Vec<Host>),
}

/// A name or number of a host, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// Who we are to a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: String,
}

/// Encrypted, with the system's authorities or with one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) ca: Option<PathBuf>,
}

const SCHEMES: [&str; 6] =
    ["redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster"];
const OPTIONS: [&str; 3] = ["ca", "sentinel-user", "sentinel-password"];

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// What is wrong with it first from the left, and what to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(AddressError::NoScheme)?;
        let (is_tls, kind) = kind_of(scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains('@') || query.contains('@') {
            return Err(AddressError::Unescaped);
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(Login::parse(login)?), hosts),
            None => (None, authority),
        };
        let options = Options::parse(query)?;
        let default_port = if kind == "sentinel" { 26379 } else { 6379 };
        let mut hosts = hosts
            .split(',')
            .zip(1..)
            .map(|(host, place)| Host::parse(host, default_port, place))
            .collect::<Result<Vec<_>, _>>()?;
        let (servers, database) = match kind {
            "sentinel" => {
                let (primary, database) = path.split_once('/').unwrap_or((path, ""));
                let primary = unescape(primary, "name of the primary")?;
                if primary.is_empty() {
                    return Err(AddressError::NoPrimary);
                }
                let login = options.sentinel_login()?;
                let database = database_of(database, "/name/database")?;
                (Servers::Sentinels { sentinels: hosts, primary, login }, database)
            }
            "cluster" => match database_of(path, "/database")? {
                0 => (Servers::Cluster(hosts), 0),
                database => return Err(AddressError::DatabaseOnCluster { database }),
            },
            _ => match (hosts.pop(), hosts.len()) {
                (Some(host), 0) => (Servers::One(host), database_of(path, "/database")?),
                (_, others) => return Err(AddressError::ManyHosts { count: others + 1 }),
            },
        };
        options.belong(kind, is_tls)?;
        let tls = is_tls.then(|| Tls { ca: options.ca.map(PathBuf::from) });
        Ok(Self { servers, login, database, tls })
    }
}

fn kind_of(scheme: &str) -> Result<(bool, &'static str), AddressError> {
    Ok(match scheme.to_ascii_lowercase().as_str() {
        "redis" => (false, "one"),
        "rediss" => (true, "one"),
        "redis-sentinel" => (false, "sentinel"),
        "rediss-sentinel" => (true, "sentinel"),
        "redis-cluster" => (false, "cluster"),
        "rediss-cluster" => (true, "cluster"),
        other => return Err(AddressError::UnknownScheme { nearest: nearest(other, &SCHEMES) }),
    })
}

fn database_of(text: &str, expected: &'static str) -> Result<u32, AddressError> {
    match text.strip_suffix('/').unwrap_or(text) {
        "" => Ok(0),
        text if text.contains('/') => Err(AddressError::LongPath { expected }),
        text => text.parse::<u16>().map(u32::from).map_err(|_| AddressError::BadDatabase),
    }
}

impl Host {
    fn parse(text: &str, default_port: u16, place: usize) -> Result<Self, AddressError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (name, after) = bracketed.split_once(']').ok_or(AddressError::BadHost { place })?;
                if name.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(AddressError::BadHost { place });
                }
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':').ok_or(AddressError::BadHost { place })?),
                };
                (name, port)
            }
            None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        let is_in_a_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let port = match port.map(|port| (port.bytes().all(|b| b.is_ascii_digit()), port.parse())) {
            None => default_port,
            Some((true, Ok(port))) if port != 0 => port,
            // An IPv6 address without its brackets has colons enough to look like this.
            Some(_) if text.parse::<std::net::Ipv6Addr>().is_ok() => {
                return Err(AddressError::BadHost { place });
            }
            Some(_) => return Err(AddressError::BadPort { place }),
        };
        if name.is_empty() {
            return Err(AddressError::NoHost { place });
        }
        if !text.starts_with('[') && !name.chars().all(is_in_a_name) {
            return Err(AddressError::BadHost { place });
        }
        Ok(Self { name: name.to_owned(), port })
    }
}

impl Login {
    fn parse(text: &str) -> Result<Self, AddressError> {
        let (user, password) = text.split_once(':').ok_or(AddressError::NoPassword)?;
        let user = unescape(user, "user")?;
        let password = unescape(password, "password")?;
        if password.is_empty() {
            return Err(AddressError::NoPassword);
        }
        Ok(Self { user: (!user.is_empty()).then_some(user), password })
    }
}

#[derive(Default)]
struct Options {
    ca: Option<String>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
}

impl Options {
    fn parse(query: &str) -> Result<Self, AddressError> {
        let mut options = Self::default();
        for (option, place) in query.split('&').filter(|option| !option.is_empty()).zip(1..) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, place) = match name {
                "ca" => ("ca", &mut options.ca),
                "sentinel-user" => ("sentinel-user", &mut options.sentinel_user),
                "sentinel-password" => ("sentinel-password", &mut options.sentinel_password),
                other => {
                    return Err(AddressError::UnknownOption { place, nearest: nearest(other, &OPTIONS) });
                }
            };
            let value = unescape(value, "options")?;
            if value.is_empty() || place.replace(value).is_some() {
                return Err(AddressError::NotOneValue { name });
            }
        }
        Ok(options)
    }

    fn sentinel_login(&self) -> Result<Option<Login>, AddressError> {
        match (&self.sentinel_user, &self.sentinel_password) {
            (user, Some(password)) => Ok(Some(Login { user: user.clone(), password: password.clone() })),
            (None, None) => Ok(None),
            (Some(_), None) => {
                Err(AddressError::MisplacedOption { name: "sentinel-user", needs: "sentinel-password too" })
            }
        }
    }

    /// An option that would be ignored is a mistake: whoever wrote `ca=` believes the line to be encrypted.
    fn belong(&self, kind: &str, is_tls: bool) -> Result<(), AddressError> {
        let misplaced = |name, needs| Err(AddressError::MisplacedOption { name, needs });
        let needs_sentinels = "a sentinel scheme, redis-sentinel://";
        match self {
            Self { ca: Some(_), .. } if !is_tls => misplaced("ca", "TLS, as in rediss://"),
            Self { sentinel_user: Some(_), .. } if kind != "sentinel" => {
                misplaced("sentinel-user", needs_sentinels)
            }
            Self { sentinel_password: Some(_), .. } if kind != "sentinel" => {
                misplaced("sentinel-password", needs_sentinels)
            }
            _ => Ok(()),
        }
    }
}

fn unescape(text: &str, part: &'static str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(AddressError::BadEscape { part }),
            },
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| AddressError::BadEscape { part })
}

/// The candidate that takes the fewest edits to reach.
fn nearest(text: &str, candidates: &[&'static str]) -> &'static str {
    let start: String = text.chars().take(32).collect();
    candidates.iter().copied().min_by_key(|candidate| levenshtein(&start, candidate)).unwrap_or_default()
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hosts, kind) = match &self.servers {
            Servers::One(host) => (std::slice::from_ref(host), ""),
            Servers::Sentinels { sentinels, .. } => (&sentinels[..], "-sentinel"),
            Servers::Cluster(hosts) => (&hosts[..], "-cluster"),
        };
        write!(f, "{}{kind}://", if self.tls.is_some() { "rediss" } else { "redis" })?;
        for (i, host) in hosts.iter().enumerate() {
            write!(f, "{}{host}", if i == 0 { "" } else { "," })?;
        }
        if let Servers::Sentinels { primary, .. } = &self.servers {
            write!(f, "/{}", primary.escape_debug())?;
        }
        match self.database {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}
