//! Spans of requests, sent to an OpenTelemetry collector where the file names one.
//!
//! Requests never wait for it. A span is put into a queue of bounded length, or dropped and counted where that is full; one
//! task takes them out in batches and sends them by OTLP over HTTP, with the client that the gateway asks its upstreams with.
//! A collector that is away is tried again a few times, then its batch is given up and counted.

mod collector;
mod otlp;

use anyhow::Result;
use collector::Collector;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{
        mpsc::{Receiver, Sender, channel},
        watch,
    },
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tollgate_admin::{Counter, Meters};
use tollgate_gateway::{Span, Tracer};
use tollgate_rules::model::{Parents, Telemetry};

/// Spans that wait to be sent; about a kilobyte each.
const QUEUE: usize = 4096;
/// Spans that are sent together.
const BATCH: usize = 512;
/// How long a span waits for company.
const COMPANY: Duration = Duration::from_secs(1);
/// How long the end waits for the last spans.
const FAREWELL: Duration = Duration::from_secs(3);

/// Who sends spans, if the file says where to.
pub(crate) struct Exporter(Option<Running>);

struct Running {
    sampler: Arc<Sampler>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What became of spans that were sent.
struct Counts {
    sent: Counter,
    failed: Counter,
}

impl Exporter {
    /// Begins to send, where there is somebody to send to. What becomes of spans is counted in any case.
    pub(crate) fn begin(settings: Option<&Telemetry>, meters: &Meters) -> Result<Self> {
        let spans = meters.registry().counters(
            "tollgate_spans_total",
            "Trace spans by result; dropped: the queue was full, failed: the collector did not accept them.",
            &["result"],
        );
        let [sent, dropped, failed] = ["sent", "dropped", "failed"].map(|result| spans.with(&[result]));
        let Some(settings) = settings else { return Ok(Self(None)) };
        let collector = Collector::new(settings)?;
        let (sender, receiver) = channel(QUEUE);
        let sampler = Sampler { share: settings.sample, parents: settings.parents, queue: sender, dropped };
        let (stop, stopped) = watch::channel(false);
        let counts = Counts { sent, failed };
        let task = tokio::spawn(export(receiver, collector, counts, stopped));
        Ok(Self(Some(Running { sampler: Arc::new(sampler), stop, task })))
    }

    /// Who takes spans.
    pub(crate) fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        self.0.as_ref().map(|running| Arc::clone(&running.sampler) as _)
    }

    /// Sends what is left, and no more after that.
    pub(crate) async fn end(&mut self) {
        let Some(mut running) = self.0.take() else { return };
        let _ = running.stop.send(true);
        if timeout(FAREWELL, &mut running.task).await.is_err() {
            running.task.abort();
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(running) = &self.0 {
            running.task.abort();
        }
    }
}

/// Says which requests get a span, and takes those.
struct Sampler {
    share: f64,
    parents: Parents,
    queue: Sender<Span>,
    dropped: Counter,
}

impl Tracer for Sampler {
    fn wants(&self, parent: Option<bool>, draw: u64) -> bool {
        match (self.parents, parent) {
            (Parents::Follow, Some(kept)) => kept,
            // 53 bits are a number from 0 up to 1, without 1.
            _ => (draw >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) < self.share,
        }
    }

    fn ended(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.increment();
        }
    }
}

/// Sends spans in batches, until told to stop.
async fn export(
    mut spans: Receiver<Span>,
    collector: Collector,
    counts: Counts,
    mut stopped: watch::Receiver<bool>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let gathered = tokio::select! {
            () = gather(&mut spans, &mut batch) => true,
            stop = stopped.wait_for(|stopped| *stopped) => {
                drop(stop);
                false
            }
        };
        if !gathered {
            // What was taken out before is in the batch.
            spans.close();
            spans.recv_many(&mut batch, BATCH).await;
        }
        if batch.is_empty() {
            return;
        }
        let all = batch.len() as u64;
        match collector.send(&batch, &mut stopped).await {
            Ok(refused) => {
                counts.sent.add(all - refused.min(all));
                counts.failed.add(refused.min(all));
            }
            Err(()) => counts.failed.add(all),
        }
        batch.clear();
    }
}

/// Waits for a span, and a little for others to go with it; the batch stays empty where none will come any more.
async fn gather(spans: &mut Receiver<Span>, batch: &mut Vec<Span>) {
    if spans.recv_many(batch, BATCH).await == 0 {
        return;
    }
    let until = Instant::now() + COMPANY;
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        match timeout_at(until, spans.recv_many(batch, room)).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
}
