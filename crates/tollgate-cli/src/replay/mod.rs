//! `tollgate replay`: recorded traffic through limits, on a clock that stands where the lines say.
//!
//! A line that cannot be obeyed exactly ends the run: everything before it is answered, and nothing is guessed.
//! The engine asks whichever store it is given; a remote one is asked from a runtime of this one thread, a line at a time.
//! With `--rules` lines are requests, and a whole rule file decides.

mod answer;
mod engine;
pub(crate) mod line;
mod place;
mod requests;
mod told;

use crate::args::ReplayArgs;
use anyhow::{Context, Result};
use engine::Engine;
use line::Line;
use place::{Place, is_store_down};
use std::{
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::Path,
};
use tokio::runtime::{Builder, Runtime};
use tollgate::{Limit, ManualClock, Store};
use tollgate_rules::{ParsedLimit, parse_limit};

/// Replays the file, or standard input.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    if let Some(rules) = &args.rules {
        return requests::run(rules, args);
    }
    let limits = parse_limits(&args.limits)?;
    let clock = ManualClock::new();
    match Place::parse(&args.store)? {
        Place::Memory => {
            let mut engine = Engine::new(place::memory(clock.clone()), clock);
            add_limits(&mut engine, &args.limits, limits)?;
            // A memory store answers at once: there is nothing to be woken by.
            let runtime = Builder::new_current_thread().build()?;
            let replayed = replay(&runtime, &mut engine, args.file.as_deref());
            place::note_evictions(engine.store());
            replayed
        }
        Place::Redis(redis) => {
            let mut engine = Engine::new(redis.open(clock.clone())?, clock).remembering();
            add_limits(&mut engine, &args.limits, limits)?;
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let replayed = replay(&runtime, &mut engine, args.file.as_deref());
            if !replayed.as_ref().is_err_and(is_store_down) {
                // A courtesy: what cannot be removed now expires within the hour.
                let _ = runtime.block_on(engine.forget());
            }
            replayed.map_err(|error| redis.advise(error))
        }
    }
}

fn replay<S: Store>(runtime: &Runtime, engine: &mut Engine<S>, file: Option<&Path>) -> Result<()> {
    answer_lines(file, |text| {
        let answer = runtime.block_on(engine.obey(Line::parse(text)?))?;
        Ok(serde_json::to_string(&answer)?)
    })
}

/// Answers every line of the file, or of standard input, with one.
fn answer_lines(file: Option<&Path>, answer: impl FnMut(&str) -> Result<String>) -> Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    let answered = match file.filter(|file| *file != Path::new("-")) {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            answer_all(file, &mut output, answer)
        }
        None => answer_all(io::stdin().lock(), &mut output, answer),
    };
    // What was answered before a bad line is answered all the same.
    output.flush()?;
    answered
}

fn answer_all(
    input: impl Read,
    output: &mut impl Write,
    mut answer: impl FnMut(&str) -> Result<String>,
) -> Result<()> {
    let mut input = BufReader::new(input);
    let mut bytes = Vec::new();
    for number in 1_u64.. {
        // Whoever types or pipes lines one by one gets each answer at once.
        if input.buffer().is_empty() {
            output.flush()?;
        }
        bytes.clear();
        let read =
            input.read_until(b'\n', &mut bytes).with_context(|| format!("line {number}: cannot be read"))?;
        if read == 0 {
            break;
        }
        let text =
            std::str::from_utf8(&bytes).with_context(|| format!("line {number}: must be UTF-8"))?.trim();
        if text.is_empty() {
            continue;
        }
        let answer = answer(text).with_context(|| format!("line {number}"))?;
        writeln!(output, "{answer}")?;
    }
    Ok(())
}

/// What is wrong with the command line.
#[derive(Debug)]
pub(crate) struct Misuse(String);

impl Misuse {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

fn parse_limits(texts: &[String]) -> Result<Vec<Limit>, Misuse> {
    each_limit(texts.iter().map(|text| (text, parse_charge(text))))
}

/// Some numbers are finer than a store keeps.
fn add_limits<S: Store>(engine: &mut Engine<S>, texts: &[String], limits: Vec<Limit>) -> Result<(), Misuse> {
    let added = texts.iter().zip(limits).map(|(text, limit)| (text, engine.add(limit)));
    each_limit(added).map(|_: Vec<()>| ())
}

/// What came of each limit on the command line, or everything that is wrong with them.
fn each_limit<'a, T, E: fmt::Display>(
    limits: impl Iterator<Item = (&'a String, Result<T, E>)>,
) -> Result<Vec<T>, Misuse> {
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for (text, limit) in limits {
        match limit {
            Ok(limit) => good.push(limit),
            Err(mistakes) => {
                wrong.push(format!("--limit {text:?}\n  {}", mistakes.to_string().replace('\n', "\n  ")));
            }
        }
    }
    if wrong.is_empty() { Ok(good) } else { Err(Misuse(format!("a limit is wrong\n{}", wrong.join("\n")))) }
}

/// A limit that requests can be charged against.
fn parse_charge(text: &str) -> Result<Limit, String> {
    match parse_limit(text) {
        Ok(ParsedLimit::Limit(limit)) => Ok(limit),
        Ok(_) => {
            Err("bandwidth paces the bytes of a body and is not a charge: it has nothing to replay".into())
        }
        Err(mistakes) => Err(mistakes.to_string()),
    }
}
