//! `domains`: where the files of Envoy's descriptors are. They are read by whoever reads files.

use super::all;
use crate::{
    decode::{Cursor, Fields, record},
    domains::DomainSettings,
    schema,
};

/// Reads `domains`: a list of files, or a mapping that has it.
pub(super) fn domains(domains: Option<Cursor<'_>>) -> Option<DomainSettings> {
    let Some(domains) = domains else { return Some(DomainSettings::default()) };
    if !domains.is_mapping() {
        return Some(super::default_domains(files(&domains)?));
    }
    let mut fields = domains.mapping(&schema::DOMAINS)?;
    let files = fields.required("files").and_then(|files| self::files(&files));
    settings_with(fields, files)
}

/// Settings with all their defaults, for files that stand elsewhere.
pub(super) fn settings(here: &Cursor<'_>, files: Vec<String>) -> Option<DomainSettings> {
    let mut fields = here.mapping(&schema::DOMAINS)?;
    fields.optional("files");
    settings_with(fields, Some(files))
}

fn settings_with(mut fields: Fields<'_>, files: Option<Vec<String>>) -> Option<DomainSettings> {
    let mut switch = |name| fields.defaulted(name, |it| it.switch());
    record!(fields => DomainSettings {
        atomic: switch("atomic"),
        shadow_mode: switch("shadow_mode"),
        quota_mode: switch("quota_mode"),
        headers: switch("headers"),
        dynamic_metadata: switch("dynamic_metadata"),
        merge: switch("merge"),
        count_refused: switch("count_refused");
        files
    })
}

fn files(files: &Cursor<'_>) -> Option<Vec<String>> {
    let patterns = files.list("[ domains/*.yaml ]")?;
    all(patterns.iter().map(pattern).collect::<Vec<_>>())
}

fn pattern(pattern: &Cursor<'_>) -> Option<String> {
    match pattern.text("a pattern of files such as domains/*.yaml")? {
        "" => {
            pattern.mistake("must not be empty: a pattern of files such as domains/*.yaml");
            None
        }
        text => Some(text.to_owned()),
    }
}
