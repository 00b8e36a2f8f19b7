//! What a link adds to a bare connection. A measurement, not a test:
//!
//! ```text
//! cargo test --release -p tollgate-redis --lib figures -- --ignored --nocapture
//! ```

use super::*;
use redis::{AsyncConnectionConfig, Cmd, RedisConnectionInfo, aio::MultiplexedConnection};
use std::sync::Arc;
use testkit::RedisServer;
use tokio::{net::TcpStream, task::JoinSet};

const ROUNDS: usize = 21;

async fn bare(server: &RedisServer) -> MultiplexedConnection {
    let stream =
        TcpStream::connect(("127.0.0.1", server.port())).await.unwrap_or_else(|error| panic!("{error}"));
    stream.set_nodelay(true).unwrap_or_else(|error| panic!("{error}"));
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let made = MultiplexedConnection::new_with_config(&info, stream, config).await;
    let (connection, driver) = made.unwrap_or_else(|error| panic!("{error}"));
    tokio::spawn(driver);
    connection
}

fn command(digest: &str) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(digest).arg(1).arg("k").arg(&[7_u8; 48][..]);
    command
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn compare(callers: usize, calls: usize) {
    let server = RedisServer::start();
    let link = Arc::new(link(&server.url()));
    let bare = bare(&server).await;
    let group = link.group();
    link.call(group, &["k"], b"").await.unwrap_or_else(|error| panic!("{error}"));
    let digest: Arc<str> = sha1_smol::Sha1::from(COUNT).digest().to_string().into();
    let (mut through, mut past) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut set = JoinSet::new();
        for _ in 0..callers {
            let link = Arc::clone(&link);
            set.spawn(async move {
                let mut times = Vec::with_capacity(calls);
                for _ in 0..calls {
                    let begun = Instant::now();
                    link.call(group, &["k"], &[7; 48]).await.unwrap_or_else(|error| panic!("{error}"));
                    times.push(begun.elapsed());
                }
                times
            });
        }
        through.push(median(set.join_all().await.concat()));
        let mut set = JoinSet::new();
        for _ in 0..callers {
            let (mut bare, digest) = (bare.clone(), Arc::clone(&digest));
            set.spawn(async move {
                let mut times = Vec::with_capacity(calls);
                for _ in 0..calls {
                    let begun = Instant::now();
                    let answer = bare.send_packed_command(&command(&digest)).await;
                    answer.unwrap_or_else(|error| panic!("{error}"));
                    times.push(begun.elapsed());
                }
                times
            });
        }
        past.push(median(set.join_all().await.concat()));
    }
    let (through, past) = (median(through), median(past));
    println!("{callers} callers: {through:?} through a link, {past:?} over a bare connection");
}

#[tokio::test]
#[ignore = "a measurement"]
async fn figures_of_a_link_beside_a_bare_connection() {
    compare(1, 4_000).await;
    compare(64, 400).await;
}
