//! Rule files, as the commands read them.

use anyhow::{Context, Result};
use std::{env, fs, path::Path};
use tollgate_rules::{Mistakes, RuleFile, parse_rules, read_rules};

/// Reads a rule file; `-` is standard input.
pub(crate) fn load(path: &Path) -> Result<RuleFile> {
    let text = text_of(path)?;
    Ok(read_rules(&path.display().to_string(), &text, variable)?)
}

/// What a text says.
pub(crate) fn parse(text: &str) -> Result<RuleFile, Mistakes> {
    parse_rules(text, variable)
}

fn text_of(path: &Path) -> Result<String> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)
            .context("cannot read standard input")?;
        bytes
    } else {
        fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8", path.display()))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Says what of a new file would take a restart: listeners and the store are opened once.
pub(crate) fn same_frame(old: &RuleFile, new: &RuleFile) -> Result<(), String> {
    if old.store != new.store {
        return Err("store: was changed, which takes a restart".to_owned());
    }
    let listeners = [
        ("gateway", &old.listen.gateway, &new.listen.gateway),
        ("grpc", &old.listen.grpc, &new.listen.grpc),
        ("http", &old.listen.http, &new.listen.http),
        ("resp", &old.listen.resp, &new.listen.resp),
        ("admin", &old.listen.admin, &new.listen.admin),
    ];
    for (name, old, new) in listeners {
        if old != new {
            return Err(format!("listen.{name}: was changed, which takes a restart"));
        }
    }
    Ok(())
}
