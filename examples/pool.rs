//! A guard for a database: its server takes three connections and drops the fourth, and we have twelve workers.
//!
//! The permit lives in the connection, so the slot comes back wherever the connection ends: returned, dropped in an error,
//! lost with an aborted task.
//!
//! `cargo run -p tollgate-examples --bin pool`

use anyhow::{Context, Result, ensure};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tollgate::{Concurrency, Limiter, Permit};

/// Connections to one database, never more than it takes.
struct Database {
    address: SocketAddr,
    slots: Arc<Limiter>,
}

struct Connection {
    stream: BufReader<TcpStream>,
    /// Dropped after the stream, when the server has one connection less.
    permit: Permit<'static>,
}

impl Database {
    fn new(address: SocketAddr) -> Result<Self> {
        // Forty may wait; a connection that hangs for a minute without a renewal counts as lost.
        let slots = Concurrency::new(3, Duration::from_secs(60))?.with_queue(40);
        Ok(Self { address, slots: Arc::new(Limiter::new(slots)) })
    }

    /// A connection, as soon as one may be opened.
    async fn connect(&self) -> Result<Connection> {
        let permit = self.slots.enter_owned().up_to(Duration::from_secs(5)).await?;
        let stream = BufReader::new(TcpStream::connect(self.address).await?);
        Ok(Connection { stream, permit })
    }
}

impl Connection {
    async fn query(&mut self, question: &str) -> Result<String> {
        self.permit.renew();
        self.stream.get_mut().write_all(format!("{question}\n").as_bytes()).await?;
        let mut answer = String::new();
        self.stream.read_line(&mut answer).await?;
        ensure!(!answer.is_empty(), "the database hung up");
        Ok(answer.trim_end().to_owned())
    }

    /// Ends it in good order, so that the server has noticed before the slot is free.
    async fn close(mut self) -> Result<()> {
        self.stream.get_mut().shutdown().await?;
        let mut rest = String::new();
        self.stream.read_line(&mut rest).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (address, server) = server().await?;
    let database = Arc::new(Database::new(address)?);

    // One worker is aborted half-way, and one forgets to close: their slots come back too.
    let doomed = tokio::spawn({
        let database = Arc::clone(&database);
        async move {
            let _connection = database.connect().await;
            std::future::pending::<()>().await;
        }
    });
    let workers: Vec<_> = (0..12)
        .map(|worker| {
            let database = Arc::clone(&database);
            tokio::spawn(async move {
                let mut connection = database.connect().await.context("no connection")?;
                let answer = connection.query(&format!("select {worker}")).await?;
                connection.close().await?;
                anyhow::Ok(answer)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    doomed.abort();
    for worker in workers {
        println!("{}", worker.await??);
    }
    let most = server.most.load(SeqCst);
    println!("13 workers, at most {most} connections at once, {} turned away", server.refused.load(SeqCst));
    ensure!(most <= 3 && server.refused.load(SeqCst) == 0);
    ensure!(database.slots.peek(0).remaining() == 3, "every slot is free again");
    Ok(())
}

/// A database that counts its connections and turns the fourth away.
#[derive(Default)]
struct Server {
    now: AtomicU32,
    most: AtomicU32,
    refused: AtomicU32,
}

async fn server() -> Result<(SocketAddr, Arc<Server>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Arc::new(Server::default());
    let serving = Arc::clone(&server);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = Arc::clone(&serving);
            tokio::spawn(async move { server.serve(stream).await });
        }
    });
    Ok((address, server))
}

impl Server {
    async fn serve(&self, stream: TcpStream) -> Result<()> {
        self.now.fetch_add(1, SeqCst);
        let served = self.answer(stream).await;
        self.now.fetch_sub(1, SeqCst);
        served
    }

    async fn answer(&self, stream: TcpStream) -> Result<()> {
        // One that just hung up may not have been noticed yet.
        for _ in 0..20 {
            if self.now.load(SeqCst) <= 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let now = self.now.load(SeqCst);
        if now > 3 {
            self.refused.fetch_add(1, SeqCst);
            return Ok(());
        }
        self.most.fetch_max(now, SeqCst);
        let mut stream = BufReader::new(stream);
        let mut question = String::new();
        while stream.read_line(&mut question).await.unwrap_or(0) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let answer = format!("{}: one row\n", question.trim_end());
            stream.get_mut().write_all(answer.as_bytes()).await?;
            question.clear();
        }
        Ok(())
    }
}
