//! The document's own kind of input, good and bad, made up by schemathesis: nothing of it is answered otherwise than the
//! document says, and nothing with a 5xx.

use super::stage::{Stage, repository};
use std::process::Command;

#[test]
fn what_the_document_describes_is_what_is_answered() {
    check(&Stage::local(), "25");
}

/// Rules in pieces are changed otherwise than a file is.
#[test]
fn and_so_it_is_where_rules_are_rows() {
    check(&Stage::of_rows(), "15");
}

fn check(stage: &Stage, seconds: &str) {
    let program = repository("target/clients/admin/bin/schemathesis");
    assert!(program.exists(), "scripts/setup test installs it: {}", program.display());
    let output = Command::new(program)
        .arg("run")
        .arg(repository("docs/openapi-admin.json"))
        .args(["--url", &format!("http://{}", stage.address())])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", "all"])
        // What one value demands of another no schema says.
        .args(["--exclude-checks", "positive_data_acceptance"])
        // Told for ever.
        .args(["--exclude-path", "/v1/events"])
        .args(["--max-time", seconds, "--max-examples", "40", "--request-timeout", "30", "--seed", "1"])
        .args(["--generation-database", "none", "--no-color", "--workers", "1"])
        .current_dir(stage.folder())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stage.curl("GET", "/healthz", &[]).status, 200, "and it is there all the same");
}
