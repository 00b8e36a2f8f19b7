//! A listener with something to show, and a client that asks it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};
use tollgate_admin::{
    Admin, Component, Explaining, Meters, Operation, RulesState, Sketch, State, StoreMode, StoreState,
    Unexplained,
};
use tollgate_net::{Drain, DrainTimes, Listener, Phase};

/// What a program would tell, for a test to change.
pub(crate) struct Told {
    pub(crate) rules: Mutex<RulesState>,
    pub(crate) store: Mutex<StoreState>,
    pub(crate) others: Mutex<Vec<Component>>,
    pub(crate) drain: Drain,
}

impl State for Told {
    fn rules(&self) -> RulesState {
        self.rules.lock().expect("not poisoned").clone()
    }

    fn store(&self) -> StoreState {
        self.store.lock().expect("not poisoned").clone()
    }

    fn phase(&self) -> Phase {
        self.drain.phase()
    }

    fn others(&self) -> Vec<Component> {
        self.others.lock().expect("not poisoned").clone()
    }

    fn explain(&self, question: &str) -> Explaining<'_> {
        let answer = match question {
            "{}" => Ok(r#"{"holds":[]}"#.to_owned()),
            "silence" => Err(Unexplained::Store("the store does not answer".to_owned())),
            "gone" => Err(Unexplained::NotHere),
            other => Err(Unexplained::Question(format!("what is {other}?"))),
        };
        Box::pin(async { answer })
    }
}

pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) told: Arc<Told>,
    pub(crate) meters: Meters,
    pub(crate) sketch: Sketch,
    pub(crate) serving: JoinHandle<()>,
    pub(crate) operations: Vec<Operation>,
}

impl Site {
    pub(crate) async fn open() -> Self {
        Self::open_with(|admin| admin).await
    }

    pub(crate) async fn open_with(change: impl FnOnce(Admin) -> Admin) -> Self {
        let hour = Duration::from_secs(3600);
        let told = Arc::new(Told {
            rules: Mutex::new(RulesState {
                file: PathBuf::from("/etc/tollgate.yaml"),
                generation: 1,
                loaded: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250),
                failure: None,
            }),
            store: Mutex::new(StoreState {
                mode: StoreMode::Memory,
                last_error: None,
                keys: 12,
                evictions: 3,
            }),
            others: Mutex::default(),
            drain: Drain::new(DrainTimes { pause: hour, deadline: hour }),
        });
        let (meters, sketch) = (Meters::new(), Sketch::new());
        let backlog = NonZeroU32::new(64).expect("not zero");
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), backlog).expect("a free port");
        let address = listener.address();
        let admin = change(Admin::new(Arc::clone(&told) as _, meters.clone(), sketch.clone()));
        let operations = admin.operations();
        let serving = tokio::spawn(admin.serve(listener, told.drain.clone()));
        Self { address, told, meters, sketch, serving, operations }
    }

    /// GET, on a connection of its own.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")).await
    }

    /// POST, on a connection of its own.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        self.ask(&(head + body)).await
    }

    pub(crate) async fn ask(&self, request: &str) -> Answer {
        ask(self.connect().await, request).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }
}

/// Sends a request, and reads until the other side closes.
pub(crate) async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("it closes").expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}
