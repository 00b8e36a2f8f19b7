//! Addresses of databases, and what may be shown of them.

use super::dialect::Dialect;
use crate::BookError;
use std::path::Path;

/// Where a database is.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) dialect: Dialect,
    /// What is connected to.
    pub(super) url: String,
    /// For people: without password and settings.
    pub(super) name: String,
    /// What must not be shown.
    secret: Option<String>,
}

impl Address {
    /// Reads one.
    pub(super) fn read(url: &str) -> Result<Self, BookError> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let dialect = match scheme {
            "mysql" | "mariadb" => Dialect::MySql,
            "postgres" | "postgresql" => Dialect::Postgres,
            "sqlite" => Dialect::Sqlite,
            _ => {
                return Err(BookError::Refused(
                    "the address of the database must begin with `mysql://`, `postgres://` or `sqlite://`"
                        .to_owned(),
                ));
            }
        };
        let shown = rest.split(['?', '#']).next().unwrap_or_default();
        let (login, place) = match dialect {
            Dialect::Sqlite => (None, shown),
            // What stands where cannot be told then, and so nothing of it may be shown.
            _ if is_ambiguous(rest) => return Err(BookError::Refused(AMBIGUOUS.to_owned())),
            _ => shown.split_once('@').map_or((None, shown), |(login, place)| (Some(login), place)),
        };
        let secret = login.and_then(|login| login.split_once(':')).map(|(_, password)| password.to_owned());
        let user = login.and_then(|login| login.split(':').next()).map(|user| format!("{user}@"));
        let name = format!("{scheme}://{}{place}", user.unwrap_or_default());
        // A file that is not there yet is made, as the tables in it are.
        let url = match dialect {
            Dialect::Sqlite if !url.contains("mode=") => {
                format!("{url}{}mode=rwc", if url.contains('?') { '&' } else { '?' })
            }
            _ => url.to_owned(),
        };
        Ok(Self { dialect, url, name, secret: secret.filter(|secret| !secret.is_empty()) })
    }

    /// The file that the database is, where it is one and is called as it is written.
    pub(super) fn file(&self) -> Option<&Path> {
        let path = self.name.strip_prefix("sqlite://")?;
        (!path.contains(['%', ':'])).then(|| Path::new(path))
    }

    /// A message without the password, should a driver ever put it into one.
    pub(super) fn shown(&self, message: &str) -> String {
        match &self.secret {
            Some(secret) => message.replace(secret.as_str(), "***"),
            None => message.to_owned(),
        }
    }
}

const AMBIGUOUS: &str = "the address of the database has a character that means something else in it, in its password \
    perhaps: please write `@` as %40, `/` as %2F, `?` as %3F and `#` as %23";

/// Whether an address behind its scheme can be read in more than one way: one `@` ends the login, before everything else that
/// means something.
fn is_ambiguous(rest: &str) -> bool {
    let host = rest.find(['/', '?']).unwrap_or(rest.len());
    rest.contains('#') || rest[host..].contains('@') || rest.matches('@').count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, name) in [
            ("mysql://ann:s3cret@db:3306/rules?ssl-mode=required", "mysql://ann@db:3306/rules"),
            ("postgres://ann:s3c%40ret@db/rules", "postgres://ann@db/rules"),
            ("postgresql://db/rules?password=s3cret", "postgresql://db/rules"),
            ("mariadb://db/rules", "mariadb://db/rules"),
            ("sqlite://a@b/rules.db", "sqlite://a@b/rules.db"),
        ] {
            assert_eq!(Address::read(url).unwrap().name, name);
        }
        let address = Address::read("mysql://ann:s3cret@db/rules").unwrap();
        assert_eq!(address.shown("cannot log in with s3cret"), "cannot log in with ***");
        assert!(Address::read("oracle://db").is_err());
        for password in
            ["s3c@ret", "s3c/ret", "s3c?ret", "s3c#ret", "p@s/s3cret#1", "s3c@ret/x", "#s3c", "ret@"]
        {
            let refused = Address::read(&format!("mysql://ann:{password}@db:3306/rules"));
            let told = refused.err().unwrap_or_else(|| panic!("{password} was taken")).to_string();
            assert!(told.contains("%40") && !told.contains("s3c") && !told.contains("ret"), "{told}");
        }
    }
}
