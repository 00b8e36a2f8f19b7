//! The documentation, held to the program: every code block of the README and of docs/ is read by what it is written for.
//!
//! | language | how it is checked |
//! |---|---|
//! | `yaml` | `tollgate check` accepts it: a rule file, a part of one, a limit, or a file of a domain |
//! | `sh`, `console` | bash parses it, and `tollgate` has the subcommands and options that it uses |
//! | `json`, `python` | it parses; `asking.rs` runs the Python program |
//! | `sql` | SQLite runs it on the tables that `tollgate rules push` made, and the rules are still good |
//! | `toml` | the crates and features that it names are in this repository |
//! | `rust` | a crate has the page among its doctests |
//! | `nginx` | nginx accepts it |
//! | `text`, and what other products are configured with | nothing: no program of ours reads it |
//!
//! `scripts/check-docs` has the links.

use crate::{folder::Folder, replay::tollgate};
use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Languages of other products: what a reader comes from.
const FOREIGN: [&str; 3] = ["text", "lua", "java"];

struct Page {
    /// Below the repository.
    name: String,
    blocks: Vec<Block>,
}

struct Block {
    line: usize,
    language: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn pages() -> Vec<Page> {
    let repository = repository();
    let mut files: Vec<_> = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md"].map(PathBuf::from).into();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.iter().map(|file| page(&repository, file)).collect()
}

fn page(repository: &Path, file: &Path) -> Page {
    let text = fs::read_to_string(repository.join(file)).unwrap();
    let mut page = Page { name: file.to_str().unwrap().to_owned(), blocks: Vec::new() };
    let mut lines = text.lines().enumerate();
    while let Some((line, opening)) = lines.next() {
        let Some(info) = opening.trim_start().strip_prefix("```") else { continue };
        let indent = opening.len() - opening.trim_start().len();
        let block = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let text = block.map(|line| line.get(indent..).unwrap_or("").to_owned() + "\n").collect();
        let language = info.split([',', ' ']).next().unwrap().to_owned();
        page.blocks.push(Block { line: line + 1, language, text });
    }
    page
}

/// What `check` says of every block of these languages, where it says something.
fn mistakes(languages: &[&str], check: impl Fn(&Page, &Block) -> Result<(), String>) -> Vec<String> {
    let (mut mistakes, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for block in page.blocks.iter().filter(|block| languages.contains(&&*block.language)) {
            checked += 1;
            if let Err(why) = check(&page, block) {
                mistakes.push(format!("{}:{}: {}", page.name, block.line, why.trim_end()));
            }
        }
    }
    assert!(checked > 0, "no page has a block in {languages:?}");
    mistakes
}

#[track_caller]
fn assert_none(mistakes: &[String]) {
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// Runs a program on a text; what it wrote to its error output where it fails.
fn run(program: &str, args: &[&str], input: &str) -> Result<(), String> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program} is installed by the set-up: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn every_block_names_a_language_that_is_checked() {
    let checked = ["yaml", "sh", "console", "json", "python", "sql", "toml", "rust", "nginx"];
    for page in pages() {
        for Block { line, language, .. } in &page.blocks {
            let is_known = checked.contains(&&**language) || FOREIGN.contains(&&**language);
            assert!(is_known, "{}:{line}: nothing checks blocks in {language:?}", page.name);
        }
    }
}

#[test]
fn yaml_is_good() {
    assert_none(&mistakes(&["yaml"], |page, block| {
        // The reference shows each key by itself; the schema's own tests have it.
        if page.name == "docs/reference.md" {
            return Ok(());
        }
        good_yaml(&block.text)
    }));
}

fn good_yaml(text: &str) -> Result<(), String> {
    let folder = Folder::new();
    for file in ["cert.pem", "key.pem", "ca.pem"] {
        folder.file(file, "");
    }
    let first = text.lines().find(|line| !line.trim_start().starts_with('#')).unwrap_or_default();
    let key = first.split(':').next().unwrap_or_default();
    let rules = match key {
        "version" => text.to_owned(),
        "domain" => {
            folder.file("domain.yaml", text);
            "version: 1\ndomains: [ domain.yaml ]\n".to_owned()
        }
        // Of another program's file.
        "scrape_configs" | "rate_limits" => return Ok(()),
        _ if tollgate_key(key) => format!("version: 1\n{text}"),
        _ => {
            let limit = text.lines().map(|line| format!("    {line}\n")).collect::<String>();
            format!("version: 1\nlimits:\n  documented:\n{limit}")
        }
    };
    // Files of domains are beside the rule file, and have blocks of their own.
    fs::create_dir(folder.path().join("domains")).unwrap();
    fs::create_dir(folder.path().join("ratelimit")).unwrap();
    for file in ["domains/shop.yaml", "ratelimit/shop.yaml"] {
        folder.file(file, "domain: documented\ndescriptors: []\n");
    }
    let file = folder.file("tollgate.yaml", rules);
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["check", &file])
        .envs(["TOKEN", "DB_PASSWORD", "OTLP_TOKEN"].map(|name| (name, "secret-of-the-environment")))
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).replace(folder.path().to_str().unwrap(), "");
    Err(format!("tollgate check says:\n{said}"))
}

/// Whether a rule file has this key at its top.
fn tollgate_key(key: &str) -> bool {
    let schema = fs::read_to_string(repository().join("docs/tollgate.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    schema["properties"].get(key).is_some()
        || schema["$defs"].as_object().unwrap().values().any(|definition| {
            definition["properties"].get("version").is_some() && definition["properties"].get(key).is_some()
        })
}

#[test]
fn shell_parses_and_uses_options_that_there_are() {
    assert_none(&mistakes(&["sh", "console"], |_, block| {
        let script = match &*block.language {
            "console" => commands_of_console(&block.text),
            _ => block.text.clone(),
        };
        run("bash", &["-n"], &script)?;
        invocations(&script).iter().try_for_each(|words| has_options(words))
    }));
}

/// What stands behind `$ `.
fn commands_of_console(text: &str) -> String {
    text.lines().filter_map(|line| line.strip_prefix("$ ")).map(|line| line.to_owned() + "\n").collect()
}

/// The arguments of every call of `tollgate`, without what is quoted.
fn invocations(script: &str) -> Vec<Vec<String>> {
    let joined = script.replace("\\\n", " ");
    let mut found = Vec::new();
    for line in joined.lines() {
        let mut plain = String::new();
        let mut quote = None;
        let mut before = ' ';
        for letter in line.chars() {
            match quote {
                Some(open) if open == letter => quote = None,
                Some(_) => {}
                None if letter == '#' && before.is_whitespace() => break,
                None if letter == '\'' || letter == '"' => {
                    quote = Some(letter);
                    plain.push('Q');
                }
                None => plain.push(letter),
            }
            before = letter;
        }
        for command in plain.split(['|', ';', '&', '(', ')', '<', '>']) {
            let mut words =
                command.split_whitespace().skip_while(|word| word.contains('=') || *word == "exec");
            let program = words.next().unwrap_or_default();
            if program == "tollgate" || program.ends_with("/tollgate") {
                found.push(words.map(str::to_owned).collect());
            }
        }
    }
    found
}

/// Whether the program's help has the subcommand and every option.
fn has_options(words: &[String]) -> Result<(), String> {
    let (mut path, mut help) = (Vec::new(), help_of(&[])?);
    for word in words.iter().take_while(|word| !word.starts_with('-')) {
        let is_subcommand = help.split_once("\nCommands:").is_some_and(|(_, commands)| {
            commands.lines().any(|line| line.split_whitespace().next() == Some(word))
        });
        if !is_subcommand {
            break;
        }
        path.push(word.as_str());
        help = help_of(&path)?;
    }
    if path.is_empty() && words.first().is_some_and(|word| !word.starts_with('-')) {
        return Err(format!("tollgate has no subcommand {:?}", words[0]));
    }
    let known: BTreeSet<_> = help.split([' ', ',', '\n', '[', ']', '=', '<']).collect();
    for option in words.iter().filter(|word| word.starts_with('-') && word.len() > 1) {
        let name = option.split('=').next().unwrap();
        if !known.contains(name) {
            return Err(format!("tollgate {} has no option {name}", path.join(" ")));
        }
    }
    Ok(())
}

fn help_of(path: &[&str]) -> Result<String, String> {
    let args = [path, &["--help"]].concat();
    let output = tollgate(&args, "");
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(format!("tollgate has no subcommand {path:?}")),
    }
}

#[test]
fn options_that_there_are_not_are_found() {
    let check = |script: &str| invocations(script).iter().try_for_each(|words| has_options(words));
    assert_eq!(check("FOO=1 target/release/tollgate serve -c a.yaml --workers 2 & echo --no"), Ok(()));
    assert_eq!(check("echo x | tollgate replay --limit 'a --b' # --c"), Ok(()));
    assert!(check("tollgate serve --no-such-option").is_err());
    assert!(check("tollgate serv -c a.yaml").is_err());
    assert!(check("tollgate rules push -c a.yaml --forced").is_err());
}

#[test]
fn json_and_python_parse() {
    assert_none(&mistakes(&["json"], |_, block| {
        let mut values = serde_json::Deserializer::from_str(&block.text).into_iter::<serde_json::Value>();
        values.try_for_each(|value| value.map(|_| ()).map_err(|error| error.to_string()))
    }));
    assert_none(&mistakes(&["python"], |_, block| {
        run("python3", &["-c", "import ast, sys; ast.parse(sys.stdin.read())"], &block.text)
    }));
}

/// One line for each database would be much for a page: the statements are plain SQL, and SQLite runs them.
#[test]
fn sql_runs_on_our_tables() {
    const RULES: &str = "
limits:
  per-client: { token_bucket: { rate: 10/s, burst: 50 } }
upstreams:
  app: { servers: [ \"http://127.0.0.1:3000\" ] }
routes:
  - name: orders
    when: { path: /orders }
    upstream: app
    rules: [ { name: create, limits: [ { use: per-client, key: [ip] } ] } ]
";
    assert_none(&mistakes(&["sql"], |_, block| {
        let folder = Folder::new();
        let database = folder.path().join("rules.db");
        let source = format!("version: 1\nrules_from: {{ source: \"sqlite://{}\" }}\n", database.display());
        let node = folder.file("node.yaml", source);
        let rules = folder.file("rules.yaml", format!("version: 1{RULES}"));
        let pushed = tollgate(&["rules", "push", "-c", &node, &rules], "");
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
        let program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
        run("python3", &["-c", program, database.to_str().unwrap()], &block.text)?;
        let pulled = tollgate(&["rules", "pull", "-c", &node], "");
        match pulled.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&pulled.stderr).into_owned()),
        }
    }));
}

/// What a reader comes from is right, too.
#[test]
fn nginx_accepts_its_configurations() {
    let program =
        ["/usr/sbin/nginx", "/usr/bin/nginx"].into_iter().find(|program| Path::new(program).exists());
    let program = std::env::var("NGINX").unwrap_or_else(|_| program.unwrap_or("nginx").to_owned());
    assert_none(&mistakes(&["nginx"], |_, block| {
        let folder = Folder::new();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths: String = paths.map(|path| format!("{path}_temp_path {path};\n")).concat();
        // nginx binds what it is told to listen at, also for a check.
        let socket = format!("unix:{}", folder.path().join("socket").display());
        let server = block.text.replace("127.0.0.1:8080", &socket);
        assert!(
            !server.contains("listen ") || server.contains(&socket),
            "a server listens at 127.0.0.1:8080"
        );
        let file = format!(
            "pid pid; error_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{server}\n}}\n"
        );
        let file = folder.file("nginx.conf", file);
        run(&program, &["-t", "-p", folder.path().to_str().unwrap(), "-c", &file], "")
    }));
}

#[test]
fn toml_names_crates_and_features_that_there_are() {
    assert_none(&mistakes(&["toml"], |_, block| {
        for line in block.text.lines().filter(|line| line.starts_with("tollgate")) {
            let name = line.split([' ', '=']).next().unwrap();
            let manifest = repository().join("crates").join(name).join("Cargo.toml");
            let manifest = fs::read_to_string(&manifest).map_err(|_| format!("there is no crate {name}"))?;
            let features =
                line.split_once("features = [").map_or("", |(_, rest)| rest.split(']').next().unwrap());
            for feature in features.split(',').map(|feature| feature.trim().trim_matches('"')) {
                let is_there = feature.is_empty()
                    || manifest.lines().any(|line| line.starts_with(&format!("{feature} =")));
                if !is_there {
                    return Err(format!("{name} has no feature {feature}"));
                }
            }
        }
        Ok(())
    }));
}

#[test]
fn rust_is_among_the_doctests() {
    let crates = fs::read_dir(repository().join("crates")).unwrap();
    let included: String = crates
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("src/lib.rs")).ok())
        .collect();
    for page in pages() {
        let has_rust = page.blocks.iter().any(|block| block.language == "rust");
        let is_included = included.contains(&format!("include_str!(\"../../../{}\")", page.name));
        assert!(!has_rust || is_included, "no crate has {} among its doctests", page.name);
    }
}
