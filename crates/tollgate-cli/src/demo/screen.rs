//! The terminal: taken over for the live view, and given back as it was, whatever ends the program.
//!
//! Frames are drawn over each other on the terminal's second screen, each in one write. The cursor rests in the corner, so
//! that keys that are pressed meanwhile are echoed where the next frame is drawn over them.

use super::line::{Colour, Line};
use std::{
    env,
    io::{self, IsTerminal, Write},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use terminal_size::{Height, Width, terminal_size};

/// Second screen, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// The cursor, and the screen that was there before.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Frames are shown whole by terminals that know this, and others ignore it.
const FRAME_BEGINS: &str = "\x1b[?2026h\x1b[H";
const FRAME_ENDS: &str = "\x1b[J\x1b[H\x1b[?2026l";

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, until this is dropped.
pub(super) struct Screen {
    colour: Colour,
}

/// Columns and lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Screen {
    /// Whether there is a terminal that can be drawn on.
    pub(super) fn is_there() -> bool {
        io::stdout().is_terminal() && env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    pub(super) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                // What went wrong is to be read on the screen that stays.
                leave();
                before(panicked);
            }));
        });
        let colour = match env::var_os("NO_COLOR") {
            Some(value) if !value.is_empty() => Colour::None,
            _ => Colour::Ansi,
        };
        IS_TAKEN.store(true, SeqCst);
        let screen = Self { colour };
        write_out(ENTER)?;
        Ok(screen)
    }

    /// As large as it is now.
    pub(super) fn size() -> Size {
        let (Width(width), Height(height)) = terminal_size().unwrap_or((Width(80), Height(24)));
        Size { width: width.into(), height: height.into() }
    }

    /// Draws over what was there.
    pub(super) fn draw(&self, lines: &[Line], size: Size) -> io::Result<()> {
        // The last column stays free: a line that fills it leaves the cursor in a state that terminals disagree on.
        let width = size.width.saturating_sub(1);
        let lines = lines.iter().take(size.height).map(|line| line.written(width, self.colour) + "\x1b[K");
        let frame = lines.collect::<Vec<_>>().join("\r\n");
        write_out(&format!("{FRAME_BEGINS}{frame}{FRAME_ENDS}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn leave() {
    if IS_TAKEN.swap(false, SeqCst) {
        // A terminal that is gone needs nothing any more.
        let _ = write_out(LEAVE);
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}
