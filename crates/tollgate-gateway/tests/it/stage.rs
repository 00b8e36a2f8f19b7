//! What the tests play on: servers behind the gateway, the gateway, and clients that speak raw bytes.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    convert::Infallible,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tollgate_gateway::{Body, ClientInfo, Handler, RequestBody, Settings, Upstream, forward};
use tollgate_net::{Drain, DrainTimes, Drained, Gauges, Listener, WorkerPool};
use tollgate_rules::model;

/// Nothing here takes longer unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway. Ends at once when dropped.
pub(crate) struct Server {
    pool: WorkerPool,
    drain: Drain,
}

impl Server {
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.pool.address()
    }

    pub(crate) fn gauges(&self) -> Gauges {
        self.pool.gauges()
    }

    /// Lets what is under way finish within so long.
    pub(crate) async fn drain(self, within: Duration) -> Drained {
        self.drain.begin();
        let mut drained = std::pin::pin!(self.drain.run());
        tokio::select! {
            drained = &mut drained => return drained,
            () = tokio::time::sleep(within) => self.drain.begin(),
        }
        drained.await
    }
}

/// A server behind the gateway. Ends when dropped.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<AtomicUsize>,
    pub(crate) connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Origin {
    /// Answers by path: `/headers` tells the head it got, `/echo` sends the body back, `/length` counts it,
    /// `/bytes/N` sends N bytes, `/never` does not answer, `/status/N` answers with N; all else its own name.
    pub(crate) async fn start(name: &'static str) -> Self {
        Self::on("127.0.0.1:0".parse().expect("an address"), name).await
    }

    pub(crate) async fn on(address: SocketAddr, name: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, opened) = (requests.clone(), connections.clone());
        let task = tokio::spawn(async move {
            let mut serving = tokio::task::JoinSet::new();
            loop {
                let Ok((socket, _)) = listener.accept().await else { return };
                opened.fetch_add(1, SeqCst);
                let counted = counted.clone();
                serving.spawn(async move {
                    let service = service_fn(move |request| {
                        counted.fetch_add(1, SeqCst);
                        answer(name, request)
                    });
                    let builder = hyper_util_auto(socket);
                    builder.serve(service).await;
                });
            }
        });
        Self { address, requests, connections, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// HTTP/1.1 or HTTP/2 by its first bytes.
struct Either(TcpStream);

fn hyper_util_auto(socket: TcpStream) -> Either {
    Either(socket)
}

impl Either {
    async fn serve<S, F>(self, service: S)
    where
        S: hyper::service::Service<
                Request<Incoming>,
                Response = Response<BoxBody<Bytes, Infallible>>,
                Error = Infallible,
                Future = F,
            >,
        F: Future<Output = Result<Response<BoxBody<Bytes, Infallible>>, Infallible>> + Send + 'static,
    {
        let mut first = [0; 3];
        let _ = self.0.set_nodelay(true);
        if !matches!(self.0.peek(&mut first).await, Ok(1..)) {
            return;
        }
        let io = TokioIo::new(self.0);
        if &first == b"PRI" {
            let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(io, service)
                .await;
        } else {
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        }
    }
}

async fn answer(
    name: &'static str,
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let path = request.uri().path().to_owned();
    let mut response = Response::new(Full::new(Bytes::from(name)).boxed());
    let number = |prefix: &str| path.strip_prefix(prefix).and_then(|rest| rest.parse::<u64>().ok());
    if path == "/headers" {
        let mut text = format!("{} {}\n", request.method(), request.uri());
        for (name, value) in request.headers() {
            text += &format!("{name}: {}\n", value.to_str().unwrap_or("?"));
        }
        *response.body_mut() = Full::new(Bytes::from(text)).boxed();
    } else if path == "/echo" {
        let mut body = request.into_body();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                if sender.send(Ok(frame)).await.is_err() {
                    return;
                }
            }
        });
        *response.body_mut() = StreamBody::new(Frames(receiver)).boxed();
    } else if path == "/length" {
        let (mut body, mut length) = (request.into_body(), 0);
        while let Some(Ok(frame)) = body.frame().await {
            length += frame.data_ref().map_or(0, Bytes::len);
        }
        *response.body_mut() = Full::new(Bytes::from(length.to_string())).boxed();
    } else if path == "/trailers" {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        let frames = [Frame::data(Bytes::from("hello")), Frame::trailers(trailers)];
        let frames = futures_util::stream::iter(frames.map(Ok));
        *response.body_mut() = StreamBody::new(frames).boxed();
    } else if path == "/never" {
        std::future::pending::<()>().await;
    } else if let Some(count) = number("/bytes/") {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let block = Bytes::from(vec![b'x'; 64 << 10]);
            let mut left = count;
            while left > 0 {
                let here = left.min(block.len() as u64);
                left -= here;
                if sender.send(Ok(Frame::data(block.slice(..here as usize)))).await.is_err() {
                    return;
                }
            }
        });
        *response.body_mut() = StreamBody::new(Frames(receiver)).boxed();
    } else if let Some(status) = number("/status/") {
        *response.status_mut() = StatusCode::from_u16(status as u16).expect("a status");
    }
    Ok(response)
}

struct Frames(tokio::sync::mpsc::Receiver<Result<Frame<Bytes>, Infallible>>);

impl futures_util::Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// A server behind the gateway that does with each connection what it is told; `n` counts them from 0.
pub(crate) async fn scripted<F, A>(script: F) -> SocketAddr
where
    F: Fn(TcpStream, usize) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        for n in 0.. {
            let Ok((socket, _)) = listener.accept().await else { return };
            tokio::spawn(script(socket, n));
        }
    });
    address
}

/// Reads a head, byte by byte so that nothing behind it is taken.
pub(crate) async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("a head is text")
}

/// Forwards everything to one upstream.
#[derive(Clone)]
pub(crate) struct Forwarding(pub(crate) Arc<Upstream>);

impl Handler for Forwarding {
    async fn handle(&self, request: Request<RequestBody>, client: ClientInfo) -> Response<Body> {
        match forward(request, &client, &self.0).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        }
    }
}

pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.workers = NonZeroUsize::new(2).expect("not zero");
    settings
}

pub(crate) fn upstream(urls: &[String]) -> Arc<Upstream> {
    Upstream::new(upstream_settings(urls)).expect("good settings")
}

pub(crate) fn upstream_settings(urls: &[String]) -> model::Upstream {
    model::Upstream::new("test", urls.iter().cloned())
}

pub(crate) fn gateway_with(settings: Settings, upstream: Arc<Upstream>) -> Server {
    serve(settings, Forwarding(upstream))
}

pub(crate) fn serve(settings: Settings, handler: impl Handler) -> Server {
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: 2 * PATIENCE });
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), NonZeroU32::new(1024).expect("not zero"));
    let pool =
        tollgate_gateway::serve(listener.expect("a port"), settings, &drain, handler).expect("threads");
    Server { pool, drain }
}

pub(crate) fn gateway(urls: &[String]) -> Server {
    gateway_with(settings(), upstream(urls))
}

pub(crate) async fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).await.expect("a connection");
    socket.set_nodelay(true).expect("nodelay");
    socket
}

/// Sends bytes and reads until the other end closes.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = connect(address).await;
    // The other end may have closed already; what it said is what counts.
    let _ = socket.write_all(bytes).await;
    rest(&mut socket).await
}

/// Reads until the other end closes.
pub(crate) async fn rest(socket: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut text)).await;
    if read.is_err() {
        panic!("not closed; so far {:?}", String::from_utf8_lossy(&text));
    }
    String::from_utf8_lossy(&text).into_owned()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    raw(address, format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").as_bytes()).await
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, so: impl Fn() -> bool) {
    testkit::eventually_async(what, || std::future::ready(so().then_some(()))).await;
}

pub(crate) fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
}

pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
