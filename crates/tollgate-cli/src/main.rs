//! The binary `tollgate`.

mod args;
mod check;
mod demo;
mod explain;
mod file;
mod log;
mod replay;
mod serve;

use args::{Args, Command};
use clap::Parser;
use std::{io, process::ExitCode};

/// A gateway makes and drops small things on every request, on several threads; the system's allocator is slower at both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Schema => check::schema(),
        Command::Replay(args) => replay::run(&args),
        Command::Demo(args) => demo::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
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
