//! `tollgate check` and `tollgate schema`.

use crate::{args::CheckArgs, file};
use anyhow::{Context, Result};
use std::io::{self, Write};
use tollgate_rules::model::RuleTable;

/// Reads the file, and tells what it has or everything that is wrong with it.
pub(crate) fn run(args: &CheckArgs) -> Result<()> {
    let file = file::load_whole(&args.file)?.rules;
    let name = file::name_of(&args.file);
    // As `serve` does it, so that both agree on what fits. A server is not asked: the address alone may be wrong.
    crate::serve::try_rules(file.clone()).with_context(|| name.clone())?;
    if let Some(from) = &file.rules_from {
        let source = tollgate_book::keeper_of(from)?.source().name;
        println!("{name}: the rules are in {source} and were not checked; `tollgate rules pull` prints them");
        if from.table == RuleTable::Native {
            println!("{name}: good, except for the rules, which were not checked");
            return Ok(());
        }
    }
    for warning in file.warnings() {
        eprintln!("{name}: warning: {warning}");
    }
    let listen = &file.listen;
    let listeners = [&listen.gateway, &listen.grpc, &listen.http, &listen.resp, &listen.admin];
    if listeners.into_iter().all(Option::is_none) {
        // Good for a replay, and for nothing else.
        eprintln!(
            "{name}: warning: listen: `tollgate serve` needs a listener, such as `listen: {{ gateway: 127.0.0.1:8080 }}`"
        );
    }
    let rules = file.everywhere.len() + file.routes.iter().map(|route| route.rules.len()).sum::<usize>();
    let mut output = io::stdout().lock();
    let domains = match file.domains.is_empty() {
        true => String::new(),
        false => {
            let (domains, rules) = (file.domains.len(), file.domains.rules().len());
            format!(", {} with {}", counted(domains, "domain"), counted(rules, "descriptor limit"))
        }
    };
    writeln!(
        output,
        "{name}: good: {}, {}, {}, {}{domains}",
        counted(file.routes.len(), "route"),
        counted(rules, "rule"),
        counted(file.limits.len(), "named limit"),
        counted(file.upstreams.len(), "upstream"),
    )?;
    Ok(())
}

/// Prints the JSON Schema of rule files.
pub(crate) fn schema() -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{}", tollgate_rules::json_schema().trim_end())?;
    Ok(())
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
