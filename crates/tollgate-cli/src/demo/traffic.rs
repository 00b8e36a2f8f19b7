//! The built-in clients at work: real requests to the gateway, over connections that are kept.
//!
//! A client knows nothing of the gateway's insides. What became of a request it reads from the answer, as any client can.

use super::{
    clients::{ApiKey, Client},
    tally::{Fate, Tally},
    upstream::{ARRIVED, BEGUN},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{self, MissedTickBehavior},
};

/// Time between client and service above which a request must have waited at the gateway: many times what the way takes, and
/// half of what the service keeps a slot for.
const MUST_HAVE_WAITED: Duration = Duration::from_millis(50);

/// A head that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Before an unreachable gateway is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// All clients at work, until this is dropped.
pub(super) struct Traffic {
    clients: Vec<(Arc<Client>, Arc<Tally>)>,
    _lanes: JoinSet<()>,
}

impl Traffic {
    pub(super) fn begin(clients: Vec<Client>, gateway: SocketAddr) -> Self {
        let mut lanes = JoinSet::new();
        let mut begun = Vec::new();
        for (place, client) in clients.into_iter().enumerate() {
            let (client, tally) = (Arc::new(client), Arc::new(Tally::default()));
            for number in 0..client.lanes {
                let (client, tally) = (Arc::clone(&client), Arc::clone(&tally));
                let lane = Lane { client, tally, number, address: address_of(place), gateway, sender: None };
                lanes.spawn(lane.run());
            }
            begun.push((client, tally));
        }
        Self { clients: begun, _lanes: lanes }
    }

    /// The clients, and what each of them met.
    pub(super) fn clients(&self) -> impl Iterator<Item = (&Client, &Tally)> {
        self.clients.iter().map(|(client, tally)| (&**client, &**tally))
    }
}

/// One of the addresses that are set aside for documentation.
fn address_of(place: usize) -> String {
    format!("192.0.2.{}", place + 1)
}

/// One connection of a client, and the requests on it.
struct Lane {
    client: Arc<Client>,
    tally: Arc<Tally>,
    number: u32,
    address: String,
    gateway: SocketAddr,
    sender: Option<SendRequest<Empty<Bytes>>>,
}

impl Lane {
    async fn run(mut self) {
        let first = time::Instant::now() + self.client.begins(self.number);
        let mut rounds = time::interval_at(first, self.client.every);
        // Whoever was held up does not catch up.
        rounds.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut sent = 0;
        loop {
            rounds.tick().await;
            for _ in 0..self.client.batch {
                sent += 1;
                let number = sent * u64::from(self.client.lanes) + u64::from(self.number);
                let fate = self.ask(number).await;
                if fate == Fate::Failed {
                    self.sender = None;
                    time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// One request and its answer.
    async fn ask(&mut self, number: u64) -> Fate {
        let began = BEGUN.elapsed();
        let asked = time::timeout(PATIENCE, self.send(number)).await;
        let (fate, response) = match asked {
            Ok(Some(response)) => (fate(&response, began), Some(response)),
            Ok(None) | Err(_) => (Fate::Failed, None),
        };
        self.tally.count(fate.clone());
        let Some(response) = response else { return fate };
        let mut body = response.into_body();
        while let Some(Ok(frame)) = body.frame().await {
            self.tally.received(frame.data_ref().map_or(0, Bytes::len));
        }
        fate
    }

    async fn send(&mut self, number: u64) -> Option<Response<Incoming>> {
        let request = self.request(number)?;
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => connect(self.gateway).await?,
        };
        sender.ready().await.ok()?;
        let response = sender.send_request(request).await.ok()?;
        self.sender = Some(sender);
        Some(response)
    }

    fn request(&self, number: u64) -> Option<Request<Empty<Bytes>>> {
        let client = &self.client;
        let request = Request::builder()
            .method(client.method.clone())
            .uri((client.path)(number))
            .header("host", self.gateway.to_string())
            .header("x-forwarded-for", &self.address);
        let request = match client.key {
            ApiKey::Own => request.header("x-api-key", client.name),
            ApiKey::Fresh => request.header("x-api-key", format!("{}-{number}", client.name)),
            ApiKey::None => request,
        };
        request.body(Empty::new()).ok()
    }
}

/// The connection ends when its sender is dropped.
async fn connect(gateway: SocketAddr) -> Option<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(gateway).await.ok()?;
    let _ = stream.set_nodelay(true);
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

/// What an answer says of its request, which set out at `began`.
fn fate<B>(response: &Response<B>, began: Duration) -> Fate {
    let headers = response.headers();
    if let Some(arrived) = arrived(headers) {
        let waited = arrived.saturating_sub(began) > MUST_HAVE_WAITED;
        return if waited { Fate::Waited } else { Fate::Passed };
    }
    // Not from the service, so from the gateway: a refusal, unless it says nothing of limits and tells of an error.
    let by = refuser(headers);
    let status = response.status();
    if by.is_some() || status == StatusCode::TOO_MANY_REQUESTS || status.is_success() {
        return Fate::Refused(by);
    }
    Fate::Failed
}

fn arrived(headers: &HeaderMap) -> Option<Duration> {
    let micros = headers.get(ARRIVED)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_micros(micros))
}

/// `RateLimit: "per-client";r=0;t=1` names who refused.
fn refuser(headers: &HeaderMap) -> Option<String> {
    let field = headers.get("ratelimit")?.to_str().ok()?;
    Some(field.split('"').nth(1)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, headers: &[(&'static str, &str)], expected: Fate) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(()).expect("a response");
        assert_eq!(fate(&response, Duration::from_secs(1)), expected);
    }

    #[test]
    fn an_answer_tells_what_became_of_a_request() {
        check(200, &[(ARRIVED, "1003000")], Fate::Passed);
        check(401, &[(ARRIVED, "1003000"), ("ratelimit", "\"login\";r=0;t=9")], Fate::Passed);
        check(200, &[(ARRIVED, "1100000")], Fate::Waited);
        let refused = Fate::Refused(Some("per-client".to_owned()));
        check(429, &[("ratelimit", "\"per-client\";r=0;t=1")], refused.clone());
        check(503, &[("ratelimit", "\"per-client\";r=0")], refused);
        check(429, &[], Fate::Refused(None));
        check(200, &[], Fate::Refused(None));
        check(502, &[], Fate::Failed);
        check(404, &[], Fate::Failed);
    }
}
