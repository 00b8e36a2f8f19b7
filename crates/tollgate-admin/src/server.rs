//! The listener `admin`.
//!
//! It answers to the end: readiness has to be told while everything else closes, so it holds no guard of the drain and closes
//! only when that is over. HTTP/1.1, with a bound on connections and on how long a head may take: what watches a process
//! must not be what brings it down. Who may see which page is the pages' business (`api/gate.rs`).

use crate::{
    Access, Asset, Meters, Operated, Operation, Sketch, State, Traffic,
    api::{self, Api, Peer, console, guarded::Guarded},
    pages::{self, Shown},
};
use axum::Router;
use hyper::{
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
    time,
};
use tollgate_net::{Ceiling, Drain, Listener, Phase, TlsAcceptor};

/// Scrapers, probes and a few people. Beyond it connections are closed unread.
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");

/// How long a request's head may take, the silence before it included: a scraper that comes every minute keeps its connection.
const PATIENCE: Duration = Duration::from_secs(65);

/// How long requests that are being answered have, once everything else is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// The listener `admin`, ready to serve.
#[derive(Clone)]
pub struct Admin {
    shown: Shown,
    api: Option<Api>,
    console: &'static [Asset],
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
        Self { shown, api: None, console: &[], tls: None }
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

    /// With a console, made of these files.
    #[must_use]
    pub fn console(self, files: &'static [Asset]) -> Self {
        Self { console: files, ..self }
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
        if self.console.is_empty() { pages } else { console::add(pages, self.console) }
    }

    /// Serves until the drain is over, and lets the [`Sketch`] fade meanwhile.
    pub async fn serve(self, listener: Listener, drain: Drain) {
        let ceiling = Ceiling::new(CONNECTIONS);
        let router = self.router();
        // Ends with this.
        let mut sampling = JoinSet::new();
        if let Some(api) = &self.api {
            sampling.spawn(api.clone().sample());
        }
        let mut fade = time::interval(Sketch::FADE_EVERY);
        fade.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
        fade.reset();
        loop {
            let (stream, peer) = tokio::select! {
                () = drain.reached(Phase::Over) => break,
                _ = fade.tick() => {
                    self.shown.sketch.fade();
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            let Some(slot) = ceiling.enter() else { continue };
            let (tls, router, drain) = (self.tls.clone(), router.clone(), drain.clone());
            tokio::spawn(async move {
                greet(stream, tls, Visit { router, peer: Peer(peer), drain }).await;
                drop(slot);
            });
        }
        // Answers that are on their way get a moment to leave.
        drop(listener);
        let _ = time::timeout(FAREWELL, async {
            while ceiling.inside() > 0 {
                time::sleep(FAREWELL / 50).await;
            }
        })
        .await;
    }
}

/// What a connection is served with.
struct Visit {
    router: Router,
    peer: Peer,
    drain: Drain,
}

async fn greet(stream: TcpStream, tls: Option<TlsAcceptor>, visit: Visit) {
    match tls {
        None => visit.talk(stream).await,
        // A handshake that fails is the peer's affair.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                visit.talk(stream).await;
            }
        }
    }
}

impl Visit {
    async fn talk(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send) {
        let Self { router, peer, drain } = self;
        let pages = TowerToHyperService::new(router);
        let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            pages.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // A connection that ends badly was the peer's, and there is nobody to tell.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = drain.reached(Phase::Over) => connection.as_mut().graceful_shutdown(),
        }
        let _ = time::timeout(FAREWELL, connection).await;
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}
