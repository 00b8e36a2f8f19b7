//! `tollgate demo`: a gateway, a service behind it, clients in front of it, and a view of who passes.
//!
//! The gateway is the real one, opened from a rule file as `tollgate serve` would; the clients are strangers to it, who talk
//! HTTP. On a terminal a table is redrawn four times a second; elsewhere a line a second says the same. Whatever ends it, the
//! clients leave first, then the gateway closes, and the rule file is removed.

mod clients;
mod line;
mod plain;
mod rules;
mod screen;
mod show;
mod tally;
mod traffic;
mod upstream;
mod view;

use crate::{
    args::DemoArgs,
    domains::DomainFiles,
    file,
    serve::{Metrics, Opened, Options, Watched},
};
use anyhow::{Context, Result};
use clients::Client;
use rules::{Place, RulesOnDisk};
use show::{Form, Show};
use std::{
    io::{self, Write},
    net::SocketAddr,
    num::NonZeroUsize,
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};
use tollgate::MemoryStore;
use tollgate_net::{Drain, DrainTimes, Phase, ReloadRequests, stop_on_signals};
use traffic::Traffic;
use upstream::Upstream;

/// The clients have left by then; a visitor who rests on a connection is not waited for.
const DRAIN: DrainTimes = DrainTimes { pause: Duration::ZERO, deadline: Duration::from_millis(250) };

/// One thread is enough for what the clients send.
const WORKERS: Option<NonZeroUsize> = NonZeroUsize::new(1);

/// Without an end of its own: until somebody asks.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// Runs it, until its time is over or a signal comes.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(demo(args))
}

async fn demo(args: &DemoArgs) -> Result<()> {
    let drain = Drain::new(DRAIN);
    stop_on_signals(&drain).context("cannot listen to signals")?;
    stop_on_hangup(&drain).context("cannot listen to signals")?;

    let upstream = Upstream::open()?;
    let gateway = Place::choose(args.gateway, rules::GATEWAY)?;
    let admin = Place::choose(args.admin, rules::ADMIN)?;
    let text = rules::text(gateway.address, admin.address, upstream.address());
    let rules = RulesOnDisk::write(&text)?;
    let watched =
        Watched { path: rules.path().to_owned(), text: text.clone(), domains: DomainFiles::default() };
    let options = Options {
        watched: Some(watched),
        book: None,
        workers: WORKERS,
        // SIGHUP ends the demo, which belongs to its terminal.
        reload: ReloadRequests::never(),
        metrics: Metrics::Kept,
    };
    let store = Arc::new(MemoryStore::new());
    let opened = Opened::open(store, file::parse(&text)?, options, drain.clone()).await?;
    let at = |name| opened.addresses().iter().find(|(door, _)| *door == name).map(|(_, address)| *address);
    let (at_gateway, at_admin) =
        at("gateway").zip(at("admin")).context("the demo's rules open no gateway")?;
    let addresses = addresses((at_gateway, &gateway), (at_admin, &admin), rules.path());

    let drained = tokio::spawn({
        let drain = drain.clone();
        async move { drain.run().await }
    });
    let traffic = Traffic::begin(Client::all(), at_gateway);
    let begun = Instant::now();
    let mut show = Show::new(&opened, &traffic, &addresses, begun);
    let shown = tokio::select! {
        // The last second is still told where it ends together with the demo.
        biased;
        shown = show.go_on(if args.plain { Form::Plain } else { Form::fitting() }) => shown,
        () = drain.reached(Phase::Leaving) => Ok(()),
        () = sleep_until(begun + args.lasting.unwrap_or(FOR_EVER)) => Ok(()),
    };

    let summary = show.summary();
    drop(traffic);
    if drain.phase() == Phase::Serving {
        drain.begin();
    }
    // Who was still there is cut off: it was a demo.
    let _ = drained.await;
    drop(opened);
    drop(rules);
    shown?;
    writeln!(io::stdout(), "{summary}")?;
    Ok(())
}

/// A terminal that is closed ends the demo as Ctrl-C does.
fn stop_on_hangup(drain: &Drain) -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let drain = drain.clone();
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            drain.begin();
        }
    });
    Ok(())
}

/// Where everything is, and what to try.
fn addresses(
    (gateway, chosen): (SocketAddr, &Place),
    (admin, chosen_admin): (SocketAddr, &Place),
    rules: &Path,
) -> Vec<(&'static str, String)> {
    let taken = |place: &Place| match place.taken {
        Some(usual) => format!("  ({usual} is taken)"),
        None => String::new(),
    };
    vec![
        ("gateway", format!("http://{gateway}{}", taken(chosen))),
        ("admin", format!("http://{admin}/  the console; /metrics  /readyz{}", taken(chosen_admin))),
        ("rules", format!("{}  (edit and save; gone at the end)", rules.display())),
        ("try", format!("curl -i -H 'x-api-key: you' http://{gateway}/orders/1")),
        ("many", format!("curl -s -H 'x-api-key: you' 'http://{gateway}/orders/[1-60]'")),
    ]
}
