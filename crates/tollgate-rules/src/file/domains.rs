//! `domains`: where the files of Envoy's descriptors are. They are read by whoever reads files.

use super::all;
use crate::{decode::Cursor, domains::DomainSettings, limit::defaulted, schema};

/// Reads `domains`: a list of files, or a mapping that has it.
pub(super) fn domains(domains: Option<Cursor<'_>>) -> Option<DomainSettings> {
    let Some(domains) = domains else { return Some(DomainSettings::default()) };
    if !domains.is_mapping() {
        return Some(DomainSettings { files: files(&domains)?, ..DomainSettings::default() });
    }
    let mut fields = domains.mapping(&schema::DOMAINS)?;
    let files = fields.required("files").and_then(|files| self::files(&files));
    let mut switch = |name, default| defaulted(fields.optional(name), default, Cursor::switch);
    let (atomic, shadow_mode, quota_mode) =
        (switch("atomic", false), switch("shadow_mode", false), switch("quota_mode", false));
    let (headers, dynamic_metadata) = (switch("headers", false), switch("dynamic_metadata", false));
    let (merge, count_refused) = (switch("merge", false), switch("count_refused", true));
    fields.finish();
    Some(DomainSettings {
        files: files?,
        atomic: atomic?,
        shadow_mode: shadow_mode?,
        quota_mode: quota_mode?,
        headers: headers?,
        dynamic_metadata: dynamic_metadata?,
        merge: merge?,
        count_refused: count_refused?,
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
