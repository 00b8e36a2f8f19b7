//! `tollgate replay`: recorded traffic through limits, on a clock that stands where the lines say.
//!
//! A line that cannot be obeyed exactly ends the run: everything before it is answered, and nothing is guessed.

mod answer;
mod engine;
mod line;

use crate::args::ReplayArgs;
use anyhow::{Context, Result};
use engine::Engine;
use line::Line;
use std::{
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::Path,
};
use tollgate::Limit;
use tollgate_rules::{ParsedLimit, parse_limit};

/// Replays the file, or standard input.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let limits = parse_limits(&args.limits)?;
    let engine = Engine::new(limits)?;
    let output = io::stdout().lock();
    match args.file.as_deref().filter(|file| *file != Path::new("-")) {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            replay(engine, file, output)
        }
        None => replay(engine, io::stdin().lock(), output),
    }
}

fn replay(mut engine: Engine, input: impl Read, output: impl Write) -> Result<()> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let obeyed = answer_all(&mut engine, &mut input, &mut output);
    // What was answered before a bad line is answered all the same.
    output.flush()?;
    if let Some(evicted) = engine.evictions() {
        eprintln!(
            "note: more keys were live at once than fit; {evicted} were forgotten, and answers may differ"
        );
    }
    obeyed
}

fn answer_all<R: Read>(engine: &mut Engine, input: &mut BufReader<R>, output: &mut impl Write) -> Result<()> {
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
        let answer = Line::parse(text).and_then(|line| engine.obey(line));
        let answer = answer.with_context(|| format!("line {number}"))?;
        serde_json::to_writer(&mut *output, &answer).map_err(io::Error::from)?;
        output.write_all(b"\n")?;
    }
    Ok(())
}

/// Everything that is wrong with the limits on the command line.
#[derive(Debug)]
pub(crate) struct BadLimits(String);

impl fmt::Display for BadLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLimits {}

fn parse_limits(texts: &[String]) -> Result<Vec<Limit>, BadLimits> {
    let mut limits = Vec::new();
    let mut wrong = Vec::new();
    for text in texts {
        match parse_charge(text) {
            Ok(limit) => limits.push(limit),
            Err(mistakes) => wrong.push(format!("--limit {text:?}\n  {}", mistakes.replace('\n', "\n  "))),
        }
    }
    if wrong.is_empty() {
        Ok(limits)
    } else {
        Err(BadLimits(format!("a limit is wrong\n{}", wrong.join("\n"))))
    }
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
