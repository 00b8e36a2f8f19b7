//! Once a second: what was counted goes into the history, who listens is told, and requests are kept anew.

use super::{Api, now_ms};
use crate::StoreMode;
use serde_json::json;
use std::time::Duration;
use tokio::{task, time};

/// What whoever listens knows.
#[derive(Clone, PartialEq, Eq)]
struct Known {
    revision: String,
    enabled: bool,
    mode: StoreMode,
}

impl Api {
    /// Goes on until it is dropped.
    pub(crate) async fn sample(self) {
        let mut known = self.known();
        loop {
            // Just after a second has ended, so that what is read belongs to that one.
            let left = 1000 - now_ms() % 1000;
            time::sleep(Duration::from_millis(left + 1)).await;
            let api = self.clone();
            // Thousands of rules are a millisecond of adding up, for which no request should wait.
            let second = task::spawn_blocking(move || api.usage.sample(&api.meters, now_ms())).await;
            if let Ok(second) = second {
                self.events.tell("second", &second);
            }
            self.recorder.tick(self.meters.requests());
            let now = self.known();
            self.tell_changes(&known, &now);
            known = now;
        }
    }

    fn known(&self) -> Known {
        let mut known = Known { revision: String::new(), enabled: true, mode: self.state.store().mode };
        self.program.in_force(&mut |program, revision| {
            revision.clone_into(&mut known.revision);
            known.enabled = program.file().enabled;
        });
        known
    }

    fn tell_changes(&self, before: &Known, now: &Known) {
        // The first that is known is no news.
        if !before.revision.is_empty() && before.revision != now.revision {
            self.events.rules(&now.revision, None);
        }
        if before.enabled != now.enabled {
            self.events.tell("switch", &json!({ "enabled": now.enabled }));
        }
        if before.mode != now.mode {
            self.events.tell("store", &json!({ "mode": now.mode.name() }));
        }
    }
}
