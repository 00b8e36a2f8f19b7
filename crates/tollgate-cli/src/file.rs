//! Rule files, as the commands read them.

use crate::domains::DomainFiles;
use anyhow::{Context, Result, anyhow, bail};
use std::{env, fs, path::Path};
use tollgate_net::Contents;
use tollgate_rules::{
    Mistakes, RuleFile,
    model::{Listener, User},
    parse_rules, read_rules,
};

/// A rule file, and what it was read from.
pub(crate) struct Loaded {
    pub(crate) rules: RuleFile,
    pub(crate) text: String,
    pub(crate) domains: DomainFiles,
}

/// Reads a rule file; `-` is standard input. Its mistakes go to standard error, one a line, as editors can jump to them.
pub(crate) fn load(path: &Path) -> Result<RuleFile> {
    let rules = load_whole(path)?.rules;
    if rules.rules_from.is_some() {
        let name = name_of(path);
        bail!(
            "the rules of {name} are in a database; `tollgate rules pull -c {name} -o FILE` writes them to a file"
        );
    }
    Ok(rules)
}

/// The same, with what it was read from.
pub(crate) fn load_whole(path: &Path) -> Result<Loaded> {
    let name = name_of(path);
    let text = text_of(path)?;
    let rules = read_rules(&name, &text, variable).map_err(|bad| {
        eprintln!("{bad}");
        let count = bad.mistakes().iter().count();
        anyhow!("{name} has {count} mistake{}", if count == 1 { "" } else { "s" })
    })?;
    let domains = DomainFiles::read(path, &rules);
    let rules = domains.put_in(rules).map_err(|wrong| {
        eprintln!("{wrong}");
        let count = wrong.lines().count();
        anyhow!("the domains of {name} have {count} mistake{}", if count == 1 { "" } else { "s" })
    })?;
    Ok(Loaded { rules, text, domains })
}

/// What a file is called where people are told about it.
pub(crate) fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// What a text says.
pub(crate) fn parse(text: &str) -> Result<RuleFile, Mistakes> {
    parse_rules(text, variable)
}

/// What a file holds; `-` is standard input.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    let name = name_of(path);
    let cannot = || format!("cannot read {name}");
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).with_context(cannot)?;
        bytes
    } else if path.is_dir() {
        bail!("{name} is a directory; name the rule file in it");
    } else if path.is_file() {
        // As much as a reload reads, and no more.
        Contents::read(path).bytes()?.to_vec()
    } else {
        fs::read(path).with_context(cannot)?
    };
    String::from_utf8(bytes).map_err(|error| {
        let (good, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let before = good.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(before).chars().count() + 1;
        let byte = rest.first().copied().unwrap_or_default();
        anyhow!("{name}:{line}:{column}: must be UTF-8; read the byte {byte:#04x}")
    })
}

/// What the environment has under this name.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Tells apart files whose rules differ, between programs of one version: a hash (FNV-1a) of everything that decides.
pub(crate) fn fingerprint(file: &RuleFile) -> String {
    let RuleFile { enabled, trusted_proxies, limits, everywhere, routes, .. } = file;
    let text = format!("{enabled}{trusted_proxies:?}{limits:?}{everywhere:?}{routes:?}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Says what of a new file would take a restart: listeners and the store are opened once.
pub(crate) fn same_frame(old: &RuleFile, new: &RuleFile) -> Result<(), String> {
    if old.store != new.store {
        return Err("store: was changed, which takes a restart".to_owned());
    }
    if old.rules_from != new.rules_from {
        return Err("rules_from: was changed, which takes a restart".to_owned());
    }
    if old.telemetry != new.telemetry {
        return Err("telemetry: was changed, which takes a restart".to_owned());
    }
    if old.log.format != new.log.format {
        return Err("log.format: was changed, which takes a restart".to_owned());
    }
    let listeners = [
        ("gateway", &old.listen.gateway, &new.listen.gateway),
        ("grpc", &old.listen.grpc, &new.listen.grpc),
        ("http", &old.listen.http, &new.listen.http),
        ("resp", &old.listen.resp, &new.listen.resp),
        ("admin", &old.listen.admin, &new.listen.admin),
    ];
    for (name, old, new) in listeners {
        // Who may look at it is changed while it is open.
        let new = new.clone().map(|new| Listener { users: users(old), ..new });
        if *old != new {
            return Err(format!("listen.{name}: was changed, which takes a restart"));
        }
    }
    Ok(())
}

fn users(listener: &Option<Listener>) -> Vec<User> {
    listener.as_ref().map(|listener| listener.users.clone()).unwrap_or_default()
}
