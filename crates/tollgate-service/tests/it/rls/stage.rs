//! A door of a test's own, and what is asked there.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use prost::Message;
use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpStream;
use tollgate::{Bounds, Enter, ManualClock, MemoryStore, Store};
use tollgate_net::{Drain, DrainTimes, Listener, PoolSettings, Tokens, WorkerPool};
use tollgate_rules::{
    DecisionService, RuleFile,
    decision::{NoRecorder, Recorder},
    parse_rules,
};
use tollgate_service::{
    Rls, RlsSettings,
    rls::{
        AskError,
        messages::{
            Code, DescriptorStatus, Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest,
            RateLimitResponse,
        },
    },
};

pub(crate) type Memory = MemoryStore<ManualClock>;

/// A rule file with these settings of its domains, and this domain file.
pub(crate) fn rules(settings: &str, domain: &str) -> RuleFile {
    rules_on("", settings, domain)
}

/// The same, with more of a rule file.
pub(crate) fn rules_on(more: &str, settings: &str, domain: &str) -> RuleFile {
    let text = format!("version: 1\n{more}\ndomains: {{ files: [ d.yaml ]{settings} }}");
    let file = parse_rules(&text, |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    file.with_domain_files(&[("d.yaml", domain)]).unwrap_or_else(|bad| panic!("{}", bad[0]))
}

/// A door that is asked without a connection, on a clock that stands still.
pub(crate) struct Rig {
    pub(crate) clock: ManualClock,
    pub(crate) decisions: DecisionService<Memory>,
    rls: Rls<Memory>,
}

impl Rig {
    pub(crate) fn new(settings: &str, domain: &str) -> Self {
        Self::of(rules(settings, domain))
    }

    pub(crate) fn of(file: RuleFile) -> Self {
        Self::recorded(file, Arc::new(NoRecorder))
    }

    /// The same, and decisions are recorded.
    pub(crate) fn recorded(file: RuleFile, recorder: Arc<dyn Recorder>) -> Self {
        let clock = ManualClock::new();
        clock.set_wall(Duration::from_secs(1_000_000_000));
        let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
        let decisions = DecisionService::recorded(store, file, move |_| Arc::clone(&recorder)).expect("kept");
        Self {
            clock,
            decisions: decisions.clone(),
            rls: Rls::new(decisions, RlsSettings::default(), Drain::new(DrainTimes::default())),
        }
    }

    pub(crate) async fn try_ask(&self, request: RateLimitRequest) -> Result<RateLimitResponse, AskError> {
        self.rls.decide(&request).await
    }

    pub(crate) async fn ask(&self, descriptors: impl Into<Vec<RateLimitDescriptor>>) -> RateLimitResponse {
        let request = request(descriptors);
        self.try_ask(request).await.expect("an answer")
    }

    /// Asks one descriptor for one hit: whether it passed, and what is left.
    pub(crate) async fn hit(&self, key: &str, value: &str) -> (Code, u32) {
        let told = self.ask([descriptor(&[(key, value)])]).await;
        (told.overall_code(), told.statuses[0].limit_remaining)
    }
}

pub(crate) fn request(descriptors: impl Into<Vec<RateLimitDescriptor>>) -> RateLimitRequest {
    RateLimitRequest { domain: "d".into(), descriptors: descriptors.into(), hits_addend: 0 }
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..Default::default() }
}

/// The same, for so many hits.
pub(crate) fn hits(entries: &[(&str, &str)], hits: u64) -> RateLimitDescriptor {
    RateLimitDescriptor { hits_addend: Some(hits), ..descriptor(entries) }
}

/// The same, with a limit of its own.
pub(crate) fn with_limit(entries: &[(&str, &str)], requests: u32, unit: i32) -> RateLimitDescriptor {
    let limit = Some(RateLimitOverride { requests_per_unit: requests, unit });
    RateLimitDescriptor { limit, ..descriptor(entries) }
}

pub(crate) fn codes(told: &RateLimitResponse) -> Vec<Code> {
    told.statuses.iter().map(DescriptorStatus::code).collect()
}

/// A door on a port.
pub(crate) struct Open {
    pub(crate) address: SocketAddr,
    pub(crate) drain: Drain,
    _pool: WorkerPool,
}

impl Open {
    /// One in memory, with this domain file.
    pub(crate) fn start(domain: &str, change: impl FnOnce(&mut RlsSettings)) -> Self {
        Self::on(Arc::new(MemoryStore::new()), rules("", domain), change)
    }

    pub(crate) fn on<S: Enter + Store + 'static>(
        store: Arc<S>,
        file: RuleFile,
        change: impl FnOnce(&mut RlsSettings),
    ) -> Self {
        let decisions = DecisionService::new(store, file).expect("kept");
        let times = DrainTimes { pause: Duration::from_millis(400), deadline: Duration::from_secs(20) };
        let drain = Drain::new(times);
        let mut settings = RlsSettings::default();
        change(&mut settings);
        let door = Arc::new(Rls::new(decisions, settings, drain.clone()));
        let backlog = NonZeroU32::new(128).expect("not zero");
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
        let mut settings = PoolSettings::default();
        settings.workers = NonZeroUsize::MIN;
        let pool = WorkerPool::start("grpc", listener, settings, &drain, door).expect("threads");
        Self { address: pool.address(), drain, _pool: pool }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }
}

pub(crate) fn tokens(words: &[&str]) -> Tokens {
    Tokens::new(words.iter().map(|word| (*word).to_owned()))
}

/// A client that speaks HTTP/2 and frames, and leaves out what it is told to.
pub(crate) struct Client {
    pub(crate) sender: SendRequest<Bytes>,
}

/// How a call ended: the code of gRPC, what was said, and the messages.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) messages: Bytes,
}

pub(crate) const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        let (sender, connection) = h2::client::handshake(stream).await.expect("it speaks HTTP/2");
        tokio::spawn(connection);
        Self { sender }
    }

    pub(crate) fn head(path: &str) -> Request<()> {
        let head = Request::post(format!("http://tollgate{path}")).header("content-type", "application/grpc");
        head.header("te", "trailers").body(()).expect("a head")
    }

    /// A call with these bytes as its body.
    pub(crate) async fn call(&self, head: Request<()>, body: Bytes) -> Result<Ended, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (response, mut stream) = sender.send_request(head, false)?;
        stream.send_data(body, true)?;
        let response = response.await?;
        let head = response.headers().clone();
        let mut body = response.into_body();
        let mut messages = BytesMut::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            messages.extend_from_slice(&piece);
        }
        let trailers = body.trailers().await?.unwrap_or(head);
        Ok(Ended {
            code: text(&trailers, "grpc-status"),
            message: text(&trailers, "grpc-message"),
            messages: messages.freeze(),
        })
    }

    pub(crate) async fn ask(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, Ended> {
        let ended = self.call(Self::head(SHOULD_RATE_LIMIT), frame(request)).await.expect("it answers");
        match ended.code.as_str() {
            "0" => Ok(RateLimitResponse::decode(&ended.messages[5..]).expect("a message")),
            _ => Err(ended),
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
}

pub(crate) fn frame(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.encoded_len() as u32);
    message.encode(&mut bytes).expect("room");
    bytes.freeze()
}
