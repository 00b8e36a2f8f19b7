//! The files of a rule file's domains: found by its patterns, read, and put into it.

use std::path::{Path, PathBuf};
use tollgate_net::{Contents, matching};
use tollgate_rules::RuleFile;

/// The patterns of a rule file, and what the files held that matched.
#[derive(Clone, Debug, Default)]
pub(crate) struct DomainFiles {
    pub(crate) patterns: Vec<PathBuf>,
    pub(crate) contents: Vec<Contents>,
}

impl DomainFiles {
    /// The files that a rule file names, relative to where it is.
    pub(crate) fn read(rule_file: &Path, rules: &RuleFile) -> Self {
        let mut files = Self::default();
        files.update(rule_file, rules);
        files
    }

    /// Finds and reads files anew where the rule file names others than these.
    pub(crate) fn update(&mut self, rule_file: &Path, rules: &RuleFile) {
        let home = rule_file.parent().unwrap_or(Path::new(""));
        let named = rules.domains.settings().files.iter().map(|pattern| home.join(pattern));
        let patterns: Vec<PathBuf> = named.collect();
        if self.patterns != patterns {
            self.contents = matching(&patterns).into_iter().map(Contents::read).collect();
            self.patterns = patterns;
        }
    }

    /// The rules with what the files of their domains say; or everything that is wrong, a line each.
    pub(crate) fn put_in(&self, rules: RuleFile) -> Result<RuleFile, String> {
        let mut wrong = Vec::new();
        let mut texts = Vec::new();
        for contents in &self.contents {
            match contents.text() {
                Ok(text) => texts.push((contents.path().display().to_string(), text)),
                Err(error) => wrong.push(format!("domains: {error}")),
            }
        }
        let is_unmatched = |pattern: &&PathBuf| matching(std::slice::from_ref(*pattern)).is_empty();
        for pattern in self.patterns.iter().filter(is_unmatched) {
            wrong.push(format!("domains: no file matches {}", pattern.display()));
        }
        let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        match rules.with_domain_files(&texts) {
            Ok(rules) if wrong.is_empty() => return Ok(rules),
            Ok(_) => {}
            Err(bad) => wrong.extend(bad.iter().map(ToString::to_string)),
        }
        Err(wrong.join("\n"))
    }
}
