//! Sets whose keys lie in several slots of a cluster, which no one call can reach: hold, then confirm.
//!
//! Every slot's part of the set is charged as a hold, all at once. If all of them passed, the holds are confirmed, and only
//! then the set is. If one refused, the others are given back. A hold that nobody confirms is given back by time, so that a
//! node that dies in between costs nobody anything for good; until then it may make others refuse who would have passed.
//!
//! Holding and confirming is a task of its own, within one timeout for both: an asker that is gone in the middle would leave
//! a set that is made in part, or made for nobody. What was made for nobody is given back. So is what was confirmed where
//! the rest could not be; where a server did not say whether it confirmed, its part may stay charged.

use crate::{
    asking::{is_outage, nonsense},
    gather::Carrier,
    link::Group,
    question::{GiveBackReason, Parts, Question, Standing, Standings, Taken, Told, Verb},
    store::RedisStore,
};
use std::time::Duration;
use tokio::{sync::oneshot, time::Instant};
use tollgate::StoreError;

/// How long a hold lasts that nobody confirms.
const HOLD: Duration = Duration::from_secs(1);

/// The parts of a set that one call can reach, and their places in the set.
struct Share {
    group: Group,
    parts: Parts,
    places: Vec<usize>,
}

impl RedisStore {
    /// Asks a question about any keys.
    pub(crate) async fn ask(&self, question: Question) -> Result<Told, StoreError> {
        if let Some(group) = self.only_group(&question.parts) {
            return self.ask_group(group, question).await;
        }
        let Question { verb, parts } = question;
        let shares = self.shares(parts);
        if shares.is_empty() {
            return Ok(Told::Statuses(Standings::new()));
        }
        match verb {
            Verb::Check { permit } | Verb::Reserve { permit } => self.crossing(shares, permit).await,
            Verb::Leave { .. } | Verb::Renew { .. } => {
                let mut sum = 0;
                for told in self.ask_each(&shares, self.deadline(), |_| verb.clone()).await {
                    sum += told?.1.number()?;
                }
                Ok(Told::Number(sum))
            }
            Verb::GiveBack { taken, reason } => {
                let of = |share: &Share| Verb::GiveBack { taken: pick(&taken, &share.places), reason };
                let mut returned = vec![0; taken.len()];
                for told in self.ask_each(&shares, self.deadline(), of).await {
                    let (places, told) = told?;
                    places
                        .into_iter()
                        .zip(told.returned()?)
                        .for_each(|(place, units)| returned[place] = units);
                }
                Ok(Told::Returned(returned))
            }
            Verb::Peek => self.peek_across(shares).await,
            verb => {
                let told = self.ask_each(&shares, self.deadline(), |_| verb.clone()).await;
                in_order(told)
            }
        }
    }

    /// A set that would be refused shows what is there untouched.
    async fn peek_across(&self, mut shares: Vec<Share>) -> Result<Told, StoreError> {
        let told = self.ask_each(&shares, self.deadline(), |_| Verb::Peek).await;
        let mut standings = in_order(told)?.statuses()?;
        if !standings.iter().all(Standing::passes) {
            shares.iter_mut().flat_map(|share| &mut share.parts).for_each(|part| part.cost = 0);
            let idle = in_order(self.ask_each(&shares, self.deadline(), |_| Verb::Peek).await)?.statuses()?;
            let passing = standings.iter_mut().zip(&idle).filter(|(standing, _)| standing.passes());
            passing.for_each(|(standing, idle)| standing.show(idle));
        }
        Ok(Told::Statuses(standings))
    }

    /// Has a set held and confirmed; dropped meanwhile, it is given back.
    async fn crossing(&self, shares: Vec<Share>, permit: u64) -> Result<Told, StoreError> {
        let (sender, answer) = oneshot::channel();
        let mut crossing = Crossing { store: self.clone(), parts: set_of(&shares), answer };
        let (store, parts) = (self.clone(), crossing.parts.clone());
        tokio::spawn(async move {
            let told = store.hold_and_confirm(shares, permit).await;
            if let Err(Ok(told)) = sender.send(told) {
                store.give_back(parts, told);
            }
        });
        (&mut crossing.answer).await.unwrap_or_else(|_| Err(nonsense()))
    }

    async fn hold_and_confirm(&self, shares: Vec<Share>, permit: u64) -> Result<Told, StoreError> {
        let id = self.draw();
        let micros = HOLD.as_micros() as u64;
        let deadline = self.deadline();
        let told = self.ask_each(&shares, deadline, |_| Verb::Hold { permit, id, micros }).await;
        if told.iter().all(Share::passed) {
            return self.confirm(shares, told.into_iter().flatten().collect(), deadline, id).await;
        }
        // Whoever holds something, or may, gives it back. An error among the answers is the set's, at once.
        let held = shares.iter().zip(&told).filter(|(_, told)| Share::may_hold(told)).map(|(share, _)| share);
        if told.iter().any(Result::is_err) {
            held.for_each(|share| {
                self.tell(Question { verb: Verb::Abandon { id }, parts: share.parts.clone() });
            });
            return in_order(told);
        }
        let untouched = self.ask_each(held, deadline, |_| Verb::Abandon { id }).await;
        let mut answers: Vec<(Vec<usize>, Told)> = told.into_iter().collect::<Result<_, _>>()?;
        for (places, idle) in untouched.into_iter().flatten() {
            let Told::Statuses(idle) = idle else { continue };
            for (mine, told) in &mut answers {
                if let (true, Told::Statuses(standings)) = (*mine == places, told) {
                    standings.iter_mut().zip(&idle).for_each(|(standing, idle)| standing.show(idle));
                }
            }
        }
        in_order(answers.into_iter().map(Ok))
    }

    async fn confirm(
        &self,
        shares: Vec<Share>,
        held: Vec<(Vec<usize>, Told)>,
        deadline: Instant,
        id: u64,
    ) -> Result<Told, StoreError> {
        let confirmed = self.ask_each(&shares, deadline, |_| Verb::Confirm { id }).await;
        let is_made: Vec<_> =
            confirmed.into_iter().map(|told| told.and_then(|(_, told)| Ok(told.number()? > 0))).collect();
        if is_made.iter().all(|made| matches!(made, Ok(true))) {
            return in_order(held.into_iter().map(Ok));
        }
        let mut error = None;
        for ((share, (_, held)), made) in shares.into_iter().zip(held).zip(is_made) {
            match made {
                Ok(true) => self.give_back(share.parts, held),
                Ok(false) => {}
                Err(why) => error = error.or(Some(why)),
            }
        }
        let ran_out = || "a hold ran out before it could be confirmed".to_owned();
        Err(error.unwrap_or_else(|| StoreError::Unanswered { why: ran_out() }))
    }

    /// Gives back what these parts took, without waiting for it.
    fn give_back(&self, parts: Parts, told: Told) {
        if let Told::Statuses(standings) = told
            && standings.iter().all(Standing::passes)
        {
            let taken = standings.into_iter().map(|standing| (standing.taken, ALL)).collect();
            self.tell(Question { verb: Verb::GiveBack { taken, reason: GiveBackReason::Unused }, parts });
        }
    }

    /// Asks every share at once. The answers, each with its places in the set.
    async fn ask_each<'a>(
        &self,
        shares: impl IntoIterator<Item = &'a Share>,
        deadline: Instant,
        verb: impl Fn(&Share) -> Verb,
    ) -> Vec<Answer> {
        // All are sent before the first answer is awaited.
        let ask = |share: &Share| {
            let question = Question { verb: verb(share), parts: share.parts.clone() };
            (share.places.clone(), self.begin(share.group, question, deadline, Carrier::Task))
        };
        let asked: Vec<_> = shares.into_iter().map(ask).collect();
        let mut answers = Vec::with_capacity(asked.len());
        for (places, begun) in asked {
            answers.push(self.finish(begun).await.map(|told| (places, told)));
        }
        answers
    }

    fn shares(&self, parts: Parts) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            let group = self.shared.gatherer.link().group_of(&part.key);
            match shares.iter_mut().find(|share| share.group == group) {
                Some(share) => {
                    share.parts.push(part);
                    share.places.push(place);
                }
                None => shares.push(Share { group, parts: [part].into(), places: vec![place] }),
            }
        }
        shares
    }
}

/// What a share answered, and its places in the set.
type Answer = Result<(Vec<usize>, Told), StoreError>;

/// More than any charge took: all of it.
const ALL: u64 = 1 << 40;

/// A set on its way, given back should its asker go before the answer is heard.
struct Crossing {
    store: RedisStore,
    parts: Parts,
    answer: oneshot::Receiver<Result<Told, StoreError>>,
}

impl Drop for Crossing {
    fn drop(&mut self) {
        // From here on the other end finds nobody; what it sent before that is still here.
        self.answer.close();
        if let Ok(Ok(told)) = self.answer.try_recv() {
            self.store.give_back(std::mem::take(&mut self.parts), told);
        }
    }
}

/// The parts of all shares, in the order of the set.
fn set_of(shares: &[Share]) -> Parts {
    let mut placed: Vec<_> = shares.iter().flat_map(|share| share.places.iter().zip(&share.parts)).collect();
    placed.sort_by_key(|(place, _)| **place);
    placed.into_iter().map(|(_, part)| part.clone()).collect()
}

impl Share {
    fn passed(told: &Answer) -> bool {
        matches!(told, Ok((_, Told::Statuses(standings))) if standings.iter().all(Standing::passes))
    }

    /// Whether something is held there, or may be. A key that could not be read holds nothing.
    fn may_hold(told: &Answer) -> bool {
        told.as_ref().is_err_and(is_outage) || Self::passed(told)
    }
}

impl Standing {
    pub(crate) const fn passes(&self) -> bool {
        self.verdict < 2
    }

    /// Shows what is there untouched, with the verdict it would have had.
    fn show(&mut self, idle: &Self) {
        (self.limit, self.remaining, self.reset) = (idle.limit, idle.remaining, idle.reset);
        self.taken = Taken::new();
    }
}

impl Told {
    pub(crate) fn number(self) -> Result<u64, StoreError> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(nonsense()),
        }
    }

    pub(crate) fn statuses(self) -> Result<Standings, StoreError> {
        match self {
            Self::Statuses(standings) => Ok(standings),
            _ => Err(nonsense()),
        }
    }

    /// How many units of each part came back.
    pub(crate) fn returned(self) -> Result<Vec<u64>, StoreError> {
        match self {
            Self::Returned(units) => Ok(units),
            _ => Err(nonsense()),
        }
    }
}

fn pick(taken: &[(Taken, u64)], places: &[usize]) -> Vec<(Taken, u64)> {
    places.iter().filter_map(|place| taken.get(*place)).cloned().collect()
}

/// The standings of all shares, in the order of the set.
fn in_order(answers: impl IntoIterator<Item = Answer>) -> Result<Told, StoreError> {
    let mut placed = Vec::new();
    for answer in answers {
        let (places, told) = answer?;
        placed.extend(places.into_iter().zip(told.statuses()?));
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(Told::Statuses(placed.into_iter().map(|(_, standing)| standing).collect()))
}
