//! `tollgate serve`: what a rule file names is opened, and kept in step with the file until told to stop.
//!
//! Which store is in use is known here and nowhere below. The gateway has workers of its own; everything else (the file,
//! health checks, the admin listener, signals) runs on one small runtime.

mod certificates;
mod change_pubsub;
mod controls;
mod doors;
mod follower;
mod holds;
mod opened;
mod pipeline;
mod recorder;
mod rule_source;
mod sql_poller;
mod state;

pub(crate) use follower::Watched;
pub(crate) use opened::{Opened, Options};
pub(crate) use recorder::Metrics;

use crate::{
    args::{self, ServeArgs},
    file::{self, Loaded},
};
use anyhow::Result;
use std::{
    io::{self, Write as _},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::Builder;
use tollgate::{Bounds, Cells, Enter, MemoryStore, Store};
use tollgate_net::{Drain, DrainTimes, Drained, ReloadRequests, reload_on_hangup, stop_on_signals};
use tollgate_redis::{HealthState, OpenError, RedisStore};
use tollgate_rules::{DecisionService, RuleFile, model::StoreSettings};

/// Serves until a signal says to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = args.file.as_ref().unwrap_or(&args.config);
    if !config.exists() {
        let name = config.display();
        anyhow::bail!(
            "rule file {name} does not exist; name one with `tollgate serve -c FILE`\n\n{}",
            args::SERVE_HELP
        );
    }
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let _entered = runtime.enter();
    let drain = Drain::new(DrainTimes { pause: args.drain_pause, deadline: args.drain_deadline });
    // Before anything else: from here on no SIGHUP ends the process. One that arrives before the listeners are open
    // is answered once they are.
    let reload = reload_on_hangup(&drain)?;
    stop_on_signals(&drain)?;
    let Loaded { rules: mut file, text, domains } = file::load_whole(config)?;
    let watched = Watched { path: config.clone(), text, domains };
    crate::log::begin(file.log);
    runtime.spawn(log_reloads(reload.clone()));
    let mut book = None;
    if let Some(from) = file.rules_from.clone() {
        let found = rule_source::find(&watched, &from, &drain, reload.clone());
        let (rules, source) = runtime.block_on(found)?;
        (file, book) = (rules, Some(source));
    }
    let options = Options {
        watched: Some(watched),
        book,
        workers: args.workers,
        reload,
        metrics: if args.without_metrics { Metrics::Not } else { Metrics::Kept },
    };
    match store_of(&file.store)? {
        AnyStore::Memory(store) => runtime.block_on(serve(store, file, options, drain)),
        AnyStore::Redis(store) => {
            runtime.spawn(greet(Arc::clone(&store)));
            runtime.block_on(serve(store, file, options, drain))
        }
    }
}

/// Logs every SIGHUP. What became of it is logged by whoever follows the files.
async fn log_reloads(mut reload: ReloadRequests) {
    loop {
        reload.next().await;
        tracing::info!(signal = "SIGHUP", "reloading rules and certificates");
    }
}

/// Writes a line to standard error. A terminal or pipe that is gone is no reason to end.
pub(super) fn print_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Asks whether Redis is there until it is, or is given up: so it is in the log and in what is told of the store before anybody
/// asks. Nothing waits for it.
async fn greet(store: Arc<RedisStore>) {
    while store.ping().await.is_err() && store.health().state == HealthState::Healthy {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn serve<S: Enter + Cells + state::Tell + 'static>(
    store: Arc<S>,
    file: RuleFile,
    options: Options,
    drain: Drain,
) -> Result<()> {
    let is_tls = file.listen.admin.as_ref().is_some_and(|admin| admin.tls.is_some());
    let mut opened = Opened::open(store, file, options, drain.clone()).await?;
    for (name, address) in opened.addresses() {
        print_line(&format!("{name:<8} {address}"));
    }
    if let Some((_, address)) = opened.addresses().iter().find(|(name, _)| *name == "admin") {
        print_line(&format!("console  {}://{address}/", if is_tls { "https" } else { "http" }));
    }
    if opened.addresses().is_empty() {
        anyhow::bail!(
            "the file opens nothing: name at least one listener, such as `listen: {{ gateway: 127.0.0.1:8080 }}`"
        );
    }
    let drained = drain.run().await;
    opened.flush().await;
    opened.join();
    if let Drained::Left(left) = drained {
        let connections = if left == 1 { "connection" } else { "connections" };
        print_line(&format!("stopped with {left} {connections} still open"));
    }
    Ok(())
}

/// Puts rules in force on a store of their own, as a start does, and forgets both: for a check of them.
pub(crate) fn try_rules(file: RuleFile) -> Result<()> {
    fn try_on<S: Store>(store: Arc<S>, file: RuleFile) -> Result<()> {
        tollgate_gateway::Prepared::first(&file)?;
        DecisionService::new(store, file)?;
        Ok(())
    }
    match store_of(&file.store)? {
        AnyStore::Memory(store) => try_on(store, file),
        AnyStore::Redis(store) => try_on(store, file),
    }
}

/// The stores there are.
pub(crate) enum AnyStore {
    Memory(Arc<MemoryStore>),
    Redis(Arc<RedisStore>),
}

/// The store that a file asks for.
pub(crate) fn store_of(settings: &StoreSettings) -> Result<AnyStore> {
    if settings.url == "memory:" {
        let bounds = Bounds { max_keys: settings.max_keys as usize, when_full: settings.when_full };
        return Ok(AnyStore::Memory(Arc::new(MemoryStore::with_bounds(bounds))));
    }
    let mut builder = RedisStore::builder(&settings.url)
        .timeout(settings.timeout)
        .on_failure(settings.on_failure)
        .nodes(settings.nodes);
    if let Some(lease) = settings.lease {
        builder = builder.lease(lease);
    }
    if !settings.busy_poll {
        builder = builder.without_busy_poll();
    }
    let opened = builder.open().map_err(|error| match error {
        OpenError::Setting { .. } => anyhow::anyhow!("store.{error}"),
        error => anyhow::Error::from(error).context("store.url"),
    });
    Ok(AnyStore::Redis(Arc::new(opened?)))
}
