//! `tollgate top`: a running server's traffic in a terminal, asked of its admin listener once a second.
//!
//! The demo draws by hand what it knows from inside; this is drawn with ratatui, since it has tables that scroll, a filter and
//! keys to press. Whatever ends it, the terminal is given back: a key, a signal, a panic, or the terminal's own end.

mod draw;
mod plain;
#[cfg(test)]
mod tests;
mod told;
mod view;

use crate::{admin_client::AdminClient, args::TopArgs};
use anyhow::{Context, Result, anyhow};
use draw::Paint;
use plain::Form;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event},
};
use std::{
    env,
    io::{self, IsTerminal, Write},
    sync::Arc,
    thread,
    time::Duration,
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use told::Told;
pub(crate) use told::plain;
use view::{Next, View};

const SECOND: Duration = Duration::from_secs(1);

/// Without an end of its own: until somebody asks.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// Watches a server.
pub(crate) fn run(args: &TopArgs) -> Result<()> {
    let server = AdminClient::new(&args.ask, args.token_file.as_deref())?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(watch(args, Arc::new(server)))
}

async fn watch(args: &TopArgs, server: Arc<AdminClient>) -> Result<()> {
    // Who cannot be asked even once is told so where it stays to be read.
    let first = Told::of(&server).await?;
    let ends = Instant::now() + args.lasting.unwrap_or(FOR_EVER);
    let form = if args.json { Form::Json } else { Form::Words };
    if args.once {
        return print(&plain::line(&first, form));
    }
    let shown = async {
        if args.plain || args.json || !has_terminal() {
            print(&plain::line(&first, form))?;
            lines(&server, form).await
        } else {
            let view = View { told: first, ..View::default() };
            screen(&server, view).await
        }
    };
    tokio::select! {
        shown = shown => shown,
        told = told_to_end() => told,
        () = sleep_until(ends) => Ok(()),
    }
}

/// Whether there is a terminal that can be drawn on, and keys to press.
fn has_terminal() -> bool {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && io::stdin().is_terminal() && !is_dumb
}

/// SIGINT, SIGTERM or SIGHUP. On a screen Ctrl-C is a key.
async fn told_to_end() -> Result<()> {
    let of = |kind| signal(kind).context("cannot listen to signals");
    let (mut interrupt, mut terminate, mut hangup) =
        (of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::hangup())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

/// A line a second, also while the server does not answer.
async fn lines(server: &AdminClient, form: Form) -> Result<()> {
    let mut seconds = interval(SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    seconds.tick().await;
    loop {
        seconds.tick().await;
        match Told::of(server).await {
            Ok(told) => print(&plain::line(&told, form))?,
            Err(error) => eprintln!("{error:#}"),
        }
    }
}

fn print(line: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()?;
    Ok(())
}

/// The terminal, until this is dropped.
struct Taken(DefaultTerminal);

impl Taken {
    /// Takes the terminal; a panic gives it back too.
    fn take() -> Result<Self> {
        ratatui::try_init().map(Self).context("cannot draw on this terminal")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing any more.
        let _ = ratatui::try_restore();
    }
}

async fn screen(server: &Arc<AdminClient>, mut view: View) -> Result<()> {
    let paint = match env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => Paint::Plain,
        _ => Paint::Colour,
    };
    let mut terminal = Taken::take()?;
    let (mut events, mut answers) = (events(), answers(Arc::clone(server)));
    loop {
        terminal.0.draw(|frame| view.draw(frame, server.url(), paint))?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Ok(Event::Key(key))) => {
                    if view.press(key) == Next::Quit {
                        return Ok(());
                    }
                }
                // A change of size is drawn.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(anyhow!(error).context("the terminal is gone")),
                None => return Ok(()),
            },
            Some(told) = answers.recv() => view.hear(told),
        }
    }
}

/// What the server says, once a second. Asked aside: keys are obeyed while it does not answer.
fn answers(server: Arc<AdminClient>) -> mpsc::Receiver<Result<Told, String>> {
    let (heard, answers) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut seconds = interval(SECOND);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            seconds.tick().await;
            let told = Told::of(&server).await.map_err(|error| format!("{error:#}"));
            if heard.send(told).await.is_err() {
                return;
            }
        }
    });
    answers
}

/// What happens at the terminal. Waiting for it blocks a thread, which ends with the program.
fn events() -> mpsc::Receiver<io::Result<Event>> {
    let (happened, events) = mpsc::channel(64);
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_over = event.is_err();
            if happened.blocking_send(event).is_err() || is_over {
                return;
            }
        }
    });
    events
}
