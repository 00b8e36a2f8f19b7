//! Everything that a file has opened.

use super::{
    certificates,
    controls::{self, Controls},
    doors::{self, AcceptErrors, Doors, Opening},
    follower::{Follower, Watched},
    pipeline::RulePipeline,
    recorder::{Metrics, Recorders, Told},
    rule_source::RuleDatabase,
    sql_poller::{SqlPoller, node_name},
    state::{self, Status, Tell},
};
use crate::{log::Refusals, telemetry::Exporter};
use anyhow::{Context, Result, anyhow};
use std::{
    error::Error,
    io,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
};
use tokio::{runtime::Handle, sync::Notify, task::JoinHandle};
use tollgate::{Cells, Enter};
use tollgate_admin::{Access, Admin, Line, Meters, Sketch, Traffic};
use tollgate_book::{FileKeeper, Keeper};
use tollgate_gateway::{Gateway, Prepared};
use tollgate_net::{Drain, Listener, ReloadRequests};
use tollgate_rules::{DecisionService, RuleFile, decision::Api, model};

/// How a file is served.
pub(crate) struct Options {
    /// The file to follow; none where the rules do not come from one.
    pub(crate) watched: Option<Watched>,
    /// The database to follow, where the rules come from one.
    pub(crate) book: Option<RuleDatabase>,
    /// Workers of the gateway; as many as there are cores where `None`.
    pub(crate) workers: Option<NonZeroUsize>,
    /// Requests to read rules and certificates at once.
    pub(crate) reload: ReloadRequests,
    /// Whether metrics are kept.
    pub(crate) metrics: Metrics,
}

/// Listeners that are open, and who looks after them.
pub(crate) struct Opened<S: Enter> {
    #[cfg_attr(
        not(any(feature = "demo", test)),
        expect(dead_code, reason = "only the demo shows what they know")
    )]
    pipeline: Arc<RulePipeline<S>>,
    addresses: Vec<(&'static str, SocketAddr)>,
    doors: Doors,
    tasks: Vec<JoinHandle<()>>,
    /// The admin listener, which serves a little longer than the drain lasts.
    admin: Option<JoinHandle<()>>,
    exporter: Exporter,
}

/// How many there are, by listener, when somebody asks.
pub(super) type Gauges = Vec<(&'static str, Box<dyn Fn() -> usize + Send + Sync>)>;

impl<S: Enter + Cells + Tell + 'static> Opened<S> {
    /// Opens what the file names.
    pub(crate) async fn open(store: Arc<S>, file: RuleFile, options: Options, drain: Drain) -> Result<Self> {
        let listen = file.listen.clone();
        let prepared = Prepared::first(&file)?;
        let (meters, sketch, traffic) = (Meters::new(), Sketch::new(), Traffic::new()?);
        store.time_calls(meters.store());
        let (mut addresses, mut tasks) = (Vec::new(), Vec::new());
        let exporter = Exporter::begin(file.telemetry.as_ref(), &meters).context("telemetry")?;
        let (refusals, tracer) = (Refusals::new(file.log), exporter.tracer());
        let told = Told { refusals, traffic: traffic.clone(), tracer };
        tasks.push(tokio::spawn(told.refusals.clone().count_left_out()));
        let recorders = Recorders {
            metrics: options.metrics,
            meters: meters.clone(),
            sketch: sketch.clone(),
            apis: doors::named(&listen),
            told,
        };
        let decisions = {
            let recorders = recorders.clone();
            DecisionService::recorded(store, file, move |program| recorders.decisions(program))?
        };
        let in_flight = listen.gateway.as_ref().map_or(u32::MAX, |gateway| gateway.max_in_flight);
        let in_flight = NonZeroUsize::new(in_flight as usize).unwrap_or(NonZeroUsize::MIN);
        let session = decisions.session(Api::Gateway);
        let responses = recorders.responses(session.rules().program());
        let door = Gateway::new(session, prepared, responses, in_flight);
        door.start_checks(&Handle::current());

        let path = options.watched.as_ref().map(|watched| watched.path.clone()).unwrap_or_default();
        let status = {
            let (decisions, door) = (decisions.clone(), door.clone());
            Arc::new(Status::new(decisions, drain.clone(), path.clone(), move || {
                state::upstreams(&door.upstreams())
            }))
        };
        let opening = Opening { options: &options, drain: &drain, meters: &meters };
        let mut doors = Doors::open(&listen, &opening, &door, &decisions)?;
        addresses.extend(doors.addresses());
        let (connections, in_flight) = (Arc::new(doors.connections()), Arc::new(doors.in_flight()));
        let mut accept_errors = doors.accept_errors();
        let (counted, waiting) = (Arc::clone(&connections), Arc::clone(&in_flight));
        meters.ask_listeners(move || asked(&counted), move || asked(&waiting));
        let text = options.watched.as_ref().map(|watched| watched.text.clone()).unwrap_or_default();
        let (keeper, document, own): (Arc<dyn Keeper>, _, _) = match &options.book {
            Some(book) => (Arc::clone(&book.keeper), book.book.clone(), text),
            None => {
                let keeper = FileKeeper::new(path.clone());
                let document = keeper.document(text);
                (Arc::new(keeper), document, String::new())
            }
        };
        let access = access(listen.admin.as_ref());
        let pipeline = Arc::new(RulePipeline {
            decisions,
            gateway: door,
            recorders,
            access: access.clone(),
            home: path,
            own: Mutex::new(own),
            keeper,
            cache: options.book.as_ref().and_then(|book| book.cache.clone()),
            document: Mutex::new(document),
            publishing: tokio::sync::Mutex::default(),
            look: Notify::new(),
            replaced: Notify::new(),
            status: Arc::clone(&status),
        });
        let mut admin_task = None;
        tasks.push(tokio::spawn(Arc::clone(&pipeline).free_replaced()));
        if let Some(listener) = &listen.admin {
            let socket = bind("admin", listener)?;
            addresses.push(("admin", socket.address()));
            let errors = socket.accept_errors();
            accept_errors.push(("admin", Box::new(move || errors.load(Relaxed))));
            let controls = Controls {
                pipeline: Arc::clone(&pipeline),
                node: controls::node(socket.address()),
                addresses: addresses.clone(),
                connections,
                in_flight,
            };
            let admin = Admin::new(status, meters.clone(), sketch)
                .api(Arc::new(controls), traffic)
                .console()
                .access(access);
            let admin = admin_with_tls(listener, admin, (&meters, &options.reload), &mut tasks)?;
            admin_task = Some(tokio::spawn(admin.serve(socket, drain.clone())));
        }
        meters.ask_accept_errors(move || counted_errors(&accept_errors));
        let (node, reload) = (node_name(&addresses), options.reload);
        if let Some(watched) = options.watched {
            let pipeline = Arc::clone(&pipeline);
            let poller =
                |book: RuleDatabase| SqlPoller::new(Arc::clone(&pipeline), book.poll, node, reload.clone());
            let database = options.book.map(poller);
            tasks.push(tokio::spawn(Follower { pipeline, watched, database }.run(reload)));
        }
        Ok(Self { pipeline, addresses, doors, tasks, admin: admin_task, exporter })
    }

    /// Waits until everything has ended, which it does when the drain is over.
    pub(crate) fn join(mut self) {
        std::mem::take(&mut self.doors).join();
    }

    /// Sends the last spans, if there is anybody to send them to, and lets the admin listener finish its last answers.
    pub(crate) async fn flush(&mut self) {
        let admin = async {
            if let Some(admin) = self.admin.take() {
                // One that panicked has ended.
                let _ = admin.await;
            }
        };
        tokio::join!(self.exporter.end(), admin);
    }

    #[cfg(test)]
    pub(super) fn pipeline(&self) -> Arc<RulePipeline<S>> {
        Arc::clone(&self.pipeline)
    }

    /// What is open, and where.
    pub(crate) fn addresses(&self) -> &[(&'static str, SocketAddr)] {
        &self.addresses
    }
}

/// What the demo shows.
#[cfg(feature = "demo")]
impl<S: Enter + Cells + Tell + 'static> Opened<S> {
    /// The rules in force, in the file's order: the route of each, `*` for those of every route, and its name.
    pub(crate) fn rules(&self) -> Vec<(String, String)> {
        let rules = self.pipeline.decisions.rules();
        let program = rules.program();
        let named = |entry: &tollgate_rules::RuleEntry| {
            let route = entry.route.map_or("*", |route| program.route(route).name.as_str());
            (route.to_owned(), entry.rule().name.clone())
        };
        program.rules().map(|entry| named(&entry)).collect()
    }

    /// How the file is: which version is in force, and why its last change is not.
    pub(crate) fn rules_state(&self) -> tollgate_admin::RulesState {
        tollgate_admin::State::rules(&*self.pipeline.status)
    }

    /// What was counted.
    pub(crate) fn meters(&self) -> &Meters {
        &self.pipeline.recorders.meters
    }

    /// The busiest keys.
    pub(crate) fn sketch(&self) -> &Sketch {
        &self.pipeline.recorders.sketch
    }
}

impl<S: Enter> Drop for Opened<S> {
    fn drop(&mut self) {
        self.tasks.iter().chain(&self.admin).for_each(JoinHandle::abort);
    }
}

/// The admin listener over TLS, where the file says so.
fn admin_with_tls(
    listener: &model::Listener,
    admin: Admin,
    (meters, reload): (&Meters, &ReloadRequests),
    tasks: &mut Vec<JoinHandle<()>>,
) -> Result<Admin> {
    Ok(match &listener.tls {
        Some(tls) => {
            let (alpn, within) = (["http/1.1"], listener.header_timeout);
            let (acceptor, following) = certificates::follow("admin", tls, &alpn, within, meters, reload)?;
            tasks.push(following);
            admin.tls(acceptor)
        }
        None => admin,
    })
}

/// Who may look at the admin listener.
fn access(listener: Option<&model::Listener>) -> Access {
    let Some(listener) = listener else { return Access::local() };
    let line = match (&listener.tls, listener.proxied) {
        (_, true) => Line::Proxied,
        (Some(_), false) => Line::Tls,
        (None, false) => Line::Plain,
    };
    Access::new(listener.users.clone(), line)
}

fn asked(gauges: &Gauges) -> Vec<(&'static str, usize)> {
    gauges.iter().map(|(name, gauge)| (*name, gauge())).collect()
}

fn counted_errors(errors: &AcceptErrors) -> Vec<(&'static str, u64)> {
    errors.iter().map(|(name, count)| (*name, count())).collect()
}

pub(super) fn bind(name: &str, listener: &model::Listener) -> Result<Listener> {
    let backlog = NonZeroU32::new(listener.backlog).unwrap_or(NonZeroU32::MIN);
    Listener::bind(listener.address, backlog).map_err(|error| {
        let why = error.source().and_then(|why| why.downcast_ref::<io::Error>()).map(io::Error::kind);
        if why == Some(io::ErrorKind::AddrInUse) {
            let address = listener.address;
            anyhow!(
                "listen.{name}: {address} is in use already; end what listens there, or name another port"
            )
        } else {
            anyhow!("listen.{name}: {error}")
        }
    })
}
