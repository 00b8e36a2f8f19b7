//! Announces changes of the rules to the other nodes of a Redis, so that they need not wait for the next poll.
//!
//! A message is a revision; a node that has another one looks at the database itself. Nothing depends on messages: where one is
//! lost or Redis is away, the poll finds the change. Servers with TLS, sentinels and clusters are left to the poll.

use futures_util::StreamExt;
use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// How long a message may take; the poll is there for the rest.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// How long nothing may be heard before the connection is made anew.
const QUIET: Duration = Duration::from_secs(60);
/// How long to wait before connecting again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A channel in Redis.
#[derive(Clone)]
pub(crate) struct ChangePubsub {
    client: redis::Client,
    channel: String,
    /// Somebody told of another revision than ours.
    pub(super) heard: Arc<Notify>,
    /// What we have in force.
    ours: Arc<RwLock<String>>,
    /// What somebody told of last.
    theirs: Arc<RwLock<String>>,
}

impl ChangePubsub {
    /// Through this store, about this database; none where the store is no single Redis.
    pub(super) fn of(store: &str, database: &str) -> Option<Self> {
        let client = store.starts_with("redis://").then(|| redis::Client::open(store).ok()).flatten()?;
        let channel = format!("tollgate:rules:{database}");
        Some(Self { client, channel, heard: Arc::default(), ours: Arc::default(), theirs: Arc::default() })
    }

    /// Publishes the revision that is in force here, where it is new and no other node has published it.
    pub(super) async fn publish_revision(&self, revision: &str) {
        let is_new = *get(&self.ours) != *revision;
        set(&self.ours, revision);
        if is_new && *get(&self.theirs) != *revision {
            self.tell(revision).await;
        }
    }

    async fn tell(&self, revision: &str) {
        let told = async {
            let mut connection = self.client.get_multiplexed_async_connection().await?;
            redis::cmd("PUBLISH").arg(&self.channel).arg(revision).exec_async(&mut connection).await
        };
        match timeout(TELL_WITHIN, told).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!("other nodes were not told of the change: {}", error.category());
            }
            Err(_) => tracing::debug!("other nodes were not told of the change in time"),
        }
    }

    /// Listens to the others, for ever.
    pub(super) async fn listen(self) {
        loop {
            if let Ok(mut messages) = self.client.get_async_pubsub().await
                && messages.subscribe(&self.channel).await.is_ok()
            {
                // Something may have been said before anybody listened.
                self.heard.notify_one();
                let mut messages = messages.on_message();
                // A connection that something in between has dropped says nothing, as a quiet one does: it is made anew.
                while let Ok(Some(message)) = timeout(QUIET, messages.next()).await {
                    let Ok(told) = message.get_payload::<String>() else { continue };
                    set(&self.theirs, &told);
                    if told != *get(&self.ours) {
                        self.heard.notify_one();
                    }
                }
            }
            sleep(AGAIN_AFTER).await;
        }
    }
}

fn get(text: &RwLock<String>) -> RwLockReadGuard<'_, String> {
    text.read().unwrap_or_else(PoisonError::into_inner)
}

fn set(text: &RwLock<String>, to: &str) {
    to.clone_into(&mut text.write().unwrap_or_else(PoisonError::into_inner));
}
