//! The binary `tollgate`.

mod admin_client;
mod algorithms;
mod args;
mod check;
#[cfg(feature = "demo")]
mod demo;
mod described;
mod domains;
mod explain;
mod file;
mod log;
mod replay;
mod rules;
mod serve;
mod telemetry;
mod token;
mod top;
mod words;

use args::{Args, Command};
use clap::Parser;
use std::{io, process::ExitCode};

/// A request makes and drops two dozen small things on one thread, which this allocator does in a third of the instructions that the
/// system's needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Schema => check::schema(),
        Command::Token => token::run(),
        Command::Replay(args) => replay::run(&args),
        #[cfg(feature = "demo")]
        Command::Demo(args) => demo::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Algorithms(args) => algorithms::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<rules::Differ>() => ExitCode::from(args::EXIT_FAILED),
        Err(error) => {
            eprintln!("error: {error:#}");
            let misused = error.is::<replay::Misuse>();
            ExitCode::from(if misused { args::EXIT_MISUSED } else { args::EXIT_FAILED })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
