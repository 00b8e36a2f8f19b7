//! The files of a rule file's domains: found by its patterns, read, and put into it.

use std::path::{Path, PathBuf};
use tollgate_net::{Contents, matching};
use tollgate_rules::RuleFile;

/// The patterns of a rule file, relative to where it is.
pub(crate) fn patterns(rule_file: &Path, rules: &RuleFile) -> Vec<PathBuf> {
    let home = rule_file.parent().unwrap_or(Path::new(""));
    rules.domains.settings().files.iter().map(|pattern| home.join(pattern)).collect()
}

/// What the files hold that match now.
pub(crate) fn read(patterns: &[PathBuf]) -> Vec<Contents> {
    matching(patterns).into_iter().map(Contents::read).collect()
}

/// The rules with what the files of their domains say; or everything that is wrong, a line each.
pub(crate) fn put_in(rules: RuleFile, patterns: &[PathBuf], files: &[Contents]) -> Result<RuleFile, String> {
    let mut wrong = Vec::new();
    let mut texts = Vec::new();
    for contents in files {
        match contents.text() {
            Ok(text) => texts.push((contents.path().display().to_string(), text)),
            Err(error) => wrong.push(format!("domains: {error}")),
        }
    }
    for pattern in patterns.iter().filter(|pattern| matching(std::slice::from_ref(pattern)).is_empty()) {
        wrong.push(format!("domains: no file matches {}", pattern.display()));
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let read = rules.with_domain_files(&texts);
    match read {
        Ok(rules) if wrong.is_empty() => Ok(rules),
        Ok(_) => Err(wrong.join("\n")),
        Err(bad) => {
            wrong.extend(bad.iter().map(ToString::to_string));
            Err(wrong.join("\n"))
        }
    }
}
