//! Requests through a rule file: each line is a request as a listener would have received it, and is answered with what the
//! gateway would have done.
//!
//! Nobody waits here: a request that would have to is charged for its turn, and told when that is. Nobody leaves either: a
//! slot of a concurrency limit is held for as long as the limit lets it be.

use super::{
    Misuse, answer_lines,
    place::{self, Place, is_store_down},
    told::Told,
};
use crate::{
    args::ReplayArgs,
    described::{Described, DescribedText},
    file,
};
use anyhow::{Result, anyhow};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::HashSet, path::Path, sync::Arc};
use tokio::runtime::Builder;
use tollgate::{Key, ManualClock, Store, StoreError, Time};
use tollgate_http::TrustedProxies;
use tollgate_rules::{
    ChargeId, DecisionService, Found, RuleFile,
    decision::{Api, Outcome, Session, Why},
    json,
};

struct Requests<S: Store> {
    session: Session<S>,
    store: Arc<S>,
    /// The store's.
    clock: ManualClock,
    proxies: TrustedProxies,
    /// Whom lines charged, where that is to be forgotten in the end.
    charged: Option<HashSet<Bucket>>,
}

type Bucket = (ChargeId, Vec<Option<String>>);

/// Replays the file, or standard input, through the rules.
pub(super) fn run(rules: &Path, args: &ReplayArgs) -> Result<()> {
    let place = Place::parse(&args.store)?;
    if rules == Path::new("-") && args.file.as_deref().is_none_or(|file| file == Path::new("-")) {
        return Err(Misuse::new("--rules - takes all of standard input; name the file of the lines").into());
    }
    let file = without_policies(file::load(rules)?);
    let clock = ManualClock::new();
    match place {
        Place::Memory => {
            let mut requests = Requests::new(place::memory(clock.clone()), clock, file)?;
            let runtime = Builder::new_current_thread().build()?;
            let replayed = answer_lines(args.file.as_deref(), |text| runtime.block_on(requests.answer(text)));
            place::note_evictions(&requests.store);
            replayed
        }
        Place::Redis(redis) => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let mut requests = Requests::new(redis.open(clock.clone())?, clock, file)?.remembering();
            let replayed = answer_lines(args.file.as_deref(), |text| runtime.block_on(requests.answer(text)));
            if !replayed.as_ref().is_err_and(is_store_down) {
                // A courtesy: what cannot be removed now expires within the hour.
                let _ = runtime.block_on(requests.forget());
            }
            replayed.map_err(|error| redis.advise(error))
        }
    }
}

/// A replay's answers are its store's own: where that is silent no policy decides in its stead.
fn without_policies(mut file: RuleFile) -> RuleFile {
    let routes = file.routes.iter_mut().flat_map(|route| &mut route.rules);
    file.everywhere.iter_mut().chain(routes).for_each(|rule| rule.on_failure = None);
    file
}

impl<S: Store> Requests<S> {
    fn new(store: S, clock: ManualClock, file: RuleFile) -> Result<Self> {
        let store = Arc::new(store);
        let proxies = TrustedProxies::new(file.trusted_proxies.iter().copied());
        let session = DecisionService::new(Arc::clone(&store), file)?.session(Api::Gateway);
        Ok(Self { session, store, clock, proxies, charged: None })
    }

    /// Remembers whom lines charge, for [`forget`](Self::forget).
    fn remembering(self) -> Self {
        Self { charged: Some(HashSet::new()), ..self }
    }

    /// What becomes of the request in a line, as a line.
    async fn answer(&mut self, text: &str) -> Result<String> {
        let read = json::read::<DescribedText>(text.as_bytes())
            .map_err(|error| anyhow!(error.describe("the line")))?;
        let at_us = read
            .at_us
            .ok_or_else(|| anyhow!("at_us: is missing; give microseconds since 1970, such as 0"))?;
        let described = Described::of(read)?;
        self.clock.set(Time::from_micros(at_us));

        let session = self.session.clone();
        let request = described.seen(&self.proxies, i64::try_from(at_us)?);
        let found = session.rules().program().find(&request);
        if found.route().is_none() {
            return Ok(serde_json::to_string(&Told::nothing(at_us))?);
        }
        self.remember(&found);
        let decision = session.decide_request_at_once(&found, described.body()).await;
        if let Outcome::Refused { why: Why::Store(error), .. } = decision.outcome {
            return Err(error.into());
        }
        Ok(serde_json::to_string(&Told::decided(at_us, &found, &decision))?)
    }

    fn remember(&mut self, found: &Found<'_, '_>) {
        let Some(charged) = &mut self.charged else { return };
        for charge in found.entries().flat_map(|entry| entry.charges) {
            charged.extend(crate::words::key_values(found, charge).map(|key| (charge.id(), key)));
        }
    }

    /// Leaves nothing in the store of what lines charged.
    async fn forget(&mut self) -> Result<(), StoreError> {
        let charged = self.charged.as_mut().map(std::mem::take).unwrap_or_default();
        let resets = charged.iter().map(async |(charge, values)| {
            let charge = &self.session.rules().program().charges()[charge.0];
            let texts: Vec<_> = values.iter().map(Option::as_deref).collect();
            // One bucket for all, that of a text, or that of a list: as rules make their keys.
            let key = match texts.as_slice() {
                [] => Key::All,
                [Some(text)] => Key::Text(text),
                texts => Key::List(texts),
            };
            self.store.reset(self.session.rules().limit_of(charge, key), key).await
        });
        stream::iter(resets).buffer_unordered(place::ABREAST).try_collect().await
    }
}
