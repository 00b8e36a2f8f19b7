//! `tollgate algorithms`: every algorithm meets the same requests, on a clock of its own, drawn side by side.
//!
//! The contest is decided before the first line is drawn; on a terminal the picture is then revealed request by request.

mod contest;
mod picture;
mod traffic;

use crate::args::AlgorithmsArgs;
use anyhow::Result;
use picture::{Colour, Picture};
use std::{
    env,
    io::{self, IsTerminal, Write},
    thread,
    time::Duration,
};

/// Between two frames; the whole picture takes about two seconds.
const FRAME: Duration = Duration::from_millis(45);

#[cfg(feature = "demo")]
const DEMO: &str = "tollgate demo            run a gateway with clients and watch its decisions\n";
#[cfg(not(feature = "demo"))]
const DEMO: &str = "";

const WHAT_NEXT: &str = "\
tollgate replay --help   run your own traffic through one or several of these
tollgate --help          all other commands";

/// Draws the picture.
pub(crate) fn run(args: &AlgorithmsArgs) -> Result<()> {
    let mut output = io::stdout().lock();
    let moving = output.is_terminal() && !args.plain;
    let colour = if moving && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
        Colour::Ansi
    } else {
        Colour::None
    };
    let picture = Picture::new(contest::hold()?, colour);
    if moving {
        for revealed in 0..traffic::COUNT {
            let frame = picture.draw(revealed);
            write!(output, "{frame}")?;
            output.flush()?;
            thread::sleep(FRAME);
            // Back to the frame's first line, for the next to be drawn over it.
            write!(output, "\x1b[{}A", frame.lines().count())?;
        }
    }
    write!(output, "{}", picture.draw(traffic::COUNT))?;
    writeln!(output, "\n{DEMO}{WHAT_NEXT}")?;
    Ok(())
}
