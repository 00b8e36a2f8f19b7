//! `tollgate rules`: rules moved between a file and a database.
//!
//! A push works out how the two differ and makes exactly these changes, in one go: what is the same keeps its row, its version
//! and its history. A pulled file says in its first line which revision it is, so that a push knows whether somebody was faster.

mod changes;
mod differ;

use crate::{
    args::{DiffArgs, PullArgs, PushArgs, RulesArgs, RulesWay},
    file,
};
use anyhow::{Context, Result, anyhow, bail};
use changes::changes;
use std::{
    env, fmt, fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};
use tokio::runtime::Builder;
use tollgate_book::{Book, BookError, Keeper, judge, keeper_of, texts};
use tollgate_rules::{
    BadRules,
    model::RulesFrom,
    pieces::{SplitRules, split_rules, whole_text},
};

/// What the first line of a pulled file begins with.
const MARK: &str = "# tollgate rules, revision ";

pub(crate) fn run(args: &RulesArgs) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.way {
            RulesWay::Push(args) => push(args).await,
            RulesWay::Pull(args) => pull(args).await,
            RulesWay::Diff(args) => diff(args).await,
        }
    })
}

/// A database, and the file that names it.
struct Place {
    keeper: Arc<dyn Keeper>,
    /// What the node has of its own.
    own: String,
}

impl Place {
    fn of(config: &Path) -> Result<Self> {
        let mut text = file::text_of(config)?;
        if file::parse(&text).is_err() {
            // With rules still in it the file is on its way to the database; what is left of it is the node's own.
            text = split(config, &text)?.own;
        }
        let own = file::parse(&text).map_err(|mistakes| shown(config, mistakes))?;
        let from: RulesFrom = own.rules_from.with_context(|| {
            format!("{} names no database: add `rules_from: {{ source: ... }}` to it", file::name_of(config))
        })?;
        Ok(Self { keeper: keeper_of(&from)?, own: text })
    }

    async fn book(&self) -> Result<Book> {
        let book = self.keeper.read().await.map_err(told)?;
        // A row that is no piece would be left out of what is pulled, and stay where something is pushed.
        if book.odd.is_empty() { Ok(book) } else { Err(told(BookError::Wrong(book.odd))) }
    }
}

async fn push(args: &PushArgs) -> Result<()> {
    let place = Place::of(&args.config)?;
    let path = args.file.as_ref().unwrap_or(&args.config);
    let name = file::name_of(path);
    let text = file::text_of(path)?;
    let split = split(path, &text)?;
    let source = place.keeper.source();
    if let Some(why) = &source.read_only {
        bail!("{}: {why}", source.name);
    }
    if split.pieces.is_empty() && !args.force {
        bail!("{name} has no rules; --force empties {}", source.name);
    }
    let book = place.book().await?;
    match revision_of(&text) {
        _ if args.force || book.pieces.is_empty() => {}
        Some(revision) if revision == book.revision => {}
        Some(_) => bail!(
            "{} was changed since {name} was pulled; see `tollgate rules diff`, pull again, or --force",
            source.name
        ),
        None => bail!(
            "{} has rules already, and {name} was not pulled from there; see `tollgate rules diff`, or --force",
            source.name
        ),
    }
    let changes = changes(&book, &split);
    if changes.is_empty() {
        println!("{} has these rules already", source.name);
        return Ok(());
    }
    let by =
        args.by.clone().or_else(|| env::var("USER").ok()).unwrap_or_else(|| "tollgate rules push".to_owned());
    let judged = judge(&place.own, file::variable);
    let pushed = place.keeper.change(&changes, &by, &judged).await.map_err(told)?;
    for line in differ::lines(&book, &split) {
        println!("{line}");
    }
    println!("{} has {} pieces now, revision {}", source.name, pushed.pieces.len(), pushed.revision);
    // What came through a pipe is nobody's file.
    if revision_of(&text).is_some() && path != Path::new("-") {
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        fs::write(path, format!("{}\n{rest}", mark(&pushed, &source.name)))
            .with_context(|| format!("cannot write {name}"))?;
    } else if path == &args.config {
        println!("now take `enabled`, `limits`, `upstreams`, `everywhere` and `routes` out of {name}");
    }
    Ok(())
}

/// Writes a file that may hold passwords: a new one is for its owner alone.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

async fn pull(args: &PullArgs) -> Result<()> {
    let place = Place::of(&args.config)?;
    let book = place.book().await?;
    let whole = whole_text(&place.own, book.enabled, &texts(&book.pieces)).map_err(|wrong| {
        let about = |at: Option<usize>| {
            at.and_then(|at| book.pieces.get(at))
                .map_or_else(|| "file".to_owned(), tollgate_book::Piece::about)
        };
        let lines = wrong.iter().map(|wrong| format!("{}:{}", about(wrong.piece), wrong.mistake));
        anyhow!("what the database has cannot be put together:\n{}", lines.collect::<Vec<_>>().join("\n"))
    })?;
    let text = format!("{}\n{whole}", mark(&book, &place.keeper.source().name));
    match &args.output {
        Some(path) => write(path, &text).with_context(|| format!("cannot write {}", path.display())),
        None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
    }
}

async fn diff(args: &DiffArgs) -> Result<()> {
    let place = Place::of(&args.config)?;
    let path = args.file.as_ref().unwrap_or(&args.config);
    let split = split(path, &file::text_of(path)?)?;
    let lines = differ::lines(&place.book().await?, &split);
    let (source, name) = (place.keeper.source().name, file::name_of(path));
    if lines.is_empty() {
        println!("{source} and {name} have the same rules");
        return Ok(());
    }
    println!("--- {source}\n+++ {name}");
    for line in lines {
        println!("{line}");
    }
    Err(Differ.into())
}

/// They differ, which has been told, and is the exit code.
#[derive(Debug)]
pub(crate) struct Differ;

impl fmt::Display for Differ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("they differ")
    }
}

impl std::error::Error for Differ {}

fn split(path: &Path, text: &str) -> Result<SplitRules> {
    split_rules(text, file::variable).map_err(|mistakes| shown(path, mistakes))
}

/// Mistakes to standard error, as editors can jump to them.
fn shown(path: &Path, mistakes: tollgate_rules::Mistakes) -> anyhow::Error {
    let name = file::name_of(path);
    let count = mistakes.iter().count();
    eprintln!("{}", BadRules::new(&name, mistakes));
    anyhow!("{name} has {count} mistake{}", if count == 1 { "" } else { "s" })
}

fn told(error: BookError) -> anyhow::Error {
    match error {
        BookError::Stale(_) => {
            anyhow!("the database was changed by somebody else in the meantime; try again")
        }
        BookError::Wrong(_) => {
            anyhow!("nothing was written, because the rules would have mistakes:\n{error}")
        }
        other => anyhow!("{other}"),
    }
}

fn mark(book: &Book, source: &str) -> String {
    format!("{MARK}{} of {source}", book.revision)
}

fn revision_of(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(MARK)?.split(' ').next()
}
