//! The listener `admin`.
//!
//! It answers to the end: readiness has to be told while everything else closes, so the drain does not wait for it, and it closes
//! only when that is over. It runs on the runtime that calls [`Admin::serve`]. HTTP/1.1, with a bound on connections and on
//! how long a head may take: what watches a process must not be what brings it down. Who may see which page is the
//! pages' business (`api/gate.rs`).

use crate::{
    Access, Meters, Operated, Operation, Sketch, State, Traffic,
    api::{self, Api, Peer, guarded::Guarded},
    console::Console,
    pages::{self, Shown},
};
use axum::Router;
use hyper::{
    body::{Frame, SizeHint},
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::{
    fmt,
    num::NonZeroUsize,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{task::JoinSet, time};
use tollgate_net::{
    ActivityStream, Connection, ConnectionActivity, ConnectionHandler, ConnectionTimeouts, Drain,
    HttpVersion, Listener, PoolSettings, RequestGuard, TlsAcceptor, WhenFull, serve_here, supervise,
};

/// Scrapers, probes and a few people. Beyond it connections are closed unread.
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may be idle: a scraper that comes every minute keeps its connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(65);

/// How long requests that are being answered have, once everything else is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// The listener `admin`, ready to serve.
#[derive(Clone)]
pub struct Admin {
    shown: Shown,
    api: Option<Api>,
    console: Option<Console>,
    tls: Option<TlsAcceptor>,
}

impl Admin {
    /// Shows what these know. The registry of `meters` asks `state` from now on, so this is made once.
    ///
    /// # Panics
    ///
    /// If it was made before with the same meters.
    #[must_use]
    pub fn new(state: Arc<dyn State>, meters: Meters, sketch: Sketch) -> Self {
        let shown = Shown { state, meters, sketch, access: Access::local() };
        pages::ask_state(&shown);
        Self { shown, api: None, console: None, tls: None }
    }

    /// For those whom `access` lets in; whoever reaches it otherwise, which is for an address of this machine.
    #[must_use]
    pub fn access(self, access: Access) -> Self {
        let api = self.api.map(|api| api.access(access.clone()));
        Self { shown: Shown { access, ..self.shown }, api, ..self }
    }

    /// With the whole API, over this program.
    #[must_use]
    pub fn api(self, program: Arc<dyn Operated>, traffic: Traffic) -> Self {
        Self { api: Some(Api::new(program, &self.shown, traffic)), ..self }
    }

    /// With the console, which stands on the API.
    #[must_use]
    pub fn console(self) -> Self {
        Self { console: Some(Console), ..self }
    }

    /// Speaks TLS.
    #[must_use]
    pub fn tls(self, acceptor: TlsAcceptor) -> Self {
        Self { tls: Some(acceptor), ..self }
    }

    /// The pages alone, for a listener that has others too.
    pub fn router(&self) -> Router {
        api::headers(self.pages().into_router())
    }

    /// What can be asked for, and by whom.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        self.pages().listed().to_vec()
    }

    fn pages(&self) -> Guarded {
        let pages = pages::add(Guarded::new(self.shown.access.clone()), &self.shown);
        let pages = api::add_login(pages, &self.shown.access);
        let pages = self.api.iter().fold(pages, |pages, api| api.add(pages));
        self.console.iter().fold(pages, |pages, console| console.add(pages))
    }

    /// Serves until the drain is over, and lets the [`Sketch`] fade meanwhile. Returns when requests under way then have been
    /// answered, a second later at most: wait for it before the program ends.
    pub async fn serve(self, listener: Listener, drain: Drain) {
        // Ends with this.
        let mut background = JoinSet::new();
        if let Some(api) = &self.api {
            background.spawn(api.clone().sample());
        }
        background.spawn(fade(self.shown.sketch.clone()));
        let mut settings = PoolSettings::default();
        settings.max_connections = CONNECTIONS;
        // A probe is better told no than kept waiting.
        settings.when_full = WhenFull::Close;
        settings.tls = self.tls.clone();
        let pages = Arc::new(Pages { router: self.router() });
        serve_here(listener, settings, drain.late_guard(), FAREWELL, pages).await;
    }
}

async fn fade(sketch: Sketch) {
    let mut fade = time::interval(Sketch::FADE_EVERY);
    fade.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
    fade.reset();
    loop {
        fade.tick().await;
        sketch.fade();
    }
}

/// Serves the pages on one connection.
struct Pages {
    router: Router,
}

impl ConnectionHandler for Pages {
    async fn serve(self: Arc<Self>, connection: Connection) {
        let Connection { stream, peer, guard } = connection;
        let activity = Arc::new(ConnectionActivity::new(guard));
        let pages = TowerToHyperService::new(self.router.clone());
        let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
            let under_way = RequestGuard::new(Arc::clone(&activity));
            request.extensions_mut().insert(Peer(peer));
            let answer = pages.call(request);
            async move { answer.await.map(|answer| answer.map(|body| Held { body, _under_way: under_way })) }
        });
        let stream = ActivityStream::new(stream, HttpVersion::Http1, Arc::clone(&activity));
        let connection = http1::Builder::new()
            // The connection is supervised; a timer of hyper's would be set for every request.
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service);
        let timeouts = ConnectionTimeouts::new(HEAD_TIMEOUT, IDLE_TIMEOUT);
        // A connection that ends badly was the client's, and there is nobody to tell. Whoever listens to events would do so
        // for ever.
        let connection = pin!(connection);
        tokio::select! {
            () = supervise(connection, http1::Connection::graceful_shutdown, &activity, &timeouts) => {}
            () = activity.guard().closing_for(FAREWELL) => {}
        }
    }
}

/// A response's body, whose request is under way until its end.
struct Held {
    body: axum::body::Body,
    _under_way: RequestGuard,
}

impl hyper::body::Body for Held {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}
