//! A certificate authority for an afternoon, and a server's certificate from it.
//!
//! Made by the `openssl` command, in some 30 ms: a library for it would be compiled by everybody who runs any
//! test, for the few that speak TLS. The extensions are spelled out, since the system's own settings vary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const SETTINGS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = localhost
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
";

/// The files of a server that speaks TLS, as PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The authority's certificate: whom a client has to trust.
    pub authority: PathBuf,
    /// The server's certificate, for 127.0.0.1 and localhost.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Makes an authority that nobody else trusts, and a certificate from it, in `directory`.
    ///
    /// # Panics
    ///
    /// If there is no `openssl` of version 3 or later.
    pub fn make(directory: &Path) -> Self {
        let path = |name: &str| directory.join(name);
        let settings = path("openssl.conf");
        fs::write(&settings, SETTINGS)
            .unwrap_or_else(|e| panic!("could not write {}: {e}", settings.display()));
        let files = Self {
            authority: path("authority.pem"),
            certificate: path("server.pem"),
            key: path("server.key"),
        };
        let authority_key = path("authority.key");
        let new = |section: &str, subject: &str, key: &Path, certificate: &Path| {
            let mut command = Command::new("openssl");
            command.args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ]);
            command.args(["-days", "7", "-extensions", section, "-subj", subject, "-config"]).arg(&settings);
            command.arg("-keyout").arg(key).arg("-out").arg(certificate);
            command
        };
        run(&mut new("authority", "/CN=Tollgate tests", &authority_key, &files.authority));
        run(new("server", "/CN=localhost", &files.key, &files.certificate)
            .arg("-CA")
            .arg(&files.authority)
            .arg("-CAkey")
            .arg(&authority_key));
        files
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("could not run openssl: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl failed: {said}");
}
