//! Files by pattern: which there are.

use std::path::PathBuf;

/// The files that any of some patterns names: `*` is any part of a name, `**` any directories, `?` one letter. In the order of
/// the patterns, those of one by name, none twice. A pattern without any of these is the file of that name, whether there
/// is one or not, so that whoever reads it can say that there is none; so is one that makes no sense.
#[must_use]
pub fn matching(patterns: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for pattern in patterns {
        let text = pattern.to_string_lossy();
        let found = match text.contains(['*', '?', '[']) {
            true => glob::glob(&text).ok(),
            false => None,
        };
        match found {
            // What cannot be looked into holds no file for us.
            Some(found) => files.extend(found.flatten().filter(|path| !path.is_dir())),
            None => files.push(pattern.clone()),
        }
    }
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    files
}
