//! Sets whose keys lie in several slots of a cluster, which no one call can reach: hold, then confirm.
//!
//! Every slot's part of the set is charged as a hold, all at once. If all of them passed, the holds are confirmed, and only
//! then the set is. If one refused, the others are given back. A hold that nobody confirms is given back by time, so that a
//! node that dies in between costs nobody anything for good; until then it may make others refuse who would have passed.

use crate::{
    asking::nonsense,
    link::Group,
    question::{Part, Question, Standing, Taken, Told, Verb},
    store::RedisStore,
};
use std::time::Duration;
use tollgate::StoreError;

/// How long a hold lasts that nobody confirms.
const HOLD: Duration = Duration::from_secs(1);

/// More than any charge took: all of it.
const ALL: u64 = 1 << 40;

/// The parts of a set that one call can reach, and their places in the set.
struct Share {
    group: Group,
    parts: Vec<Part>,
    places: Vec<usize>,
}

impl RedisStore {
    /// Asks a question about any keys.
    pub(crate) async fn ask(&self, question: Question) -> Result<Told, StoreError> {
        let Question { verb, parts } = question;
        let mut shares = self.shares(parts);
        if shares.len() <= 1 {
            return match shares.pop() {
                Some(Share { group, parts, .. }) => self.ask_group(group, Question { verb, parts }).await,
                None => Ok(Told::Statuses(Vec::new())),
            };
        }
        match verb {
            Verb::Check { permit } | Verb::Reserve { permit } => self.hold_and_confirm(shares, permit).await,
            Verb::Leave { .. } | Verb::Renew { .. } => {
                let mut sum = 0;
                for told in self.ask_each(shares, |_| verb.clone()).await {
                    sum += told?.1.number()?;
                }
                Ok(Told::Number(sum))
            }
            Verb::GiveBack { taken } => {
                let of = |share: &Share| Verb::GiveBack { taken: pick(&taken, &share.places) };
                for told in self.ask_each(shares, of).await {
                    told?;
                }
                Ok(Told::Number(0))
            }
            verb => {
                let told = self.ask_each(shares, |_| verb.clone()).await;
                in_order(told.into_iter().collect::<Result<_, _>>()?)
            }
        }
    }

    async fn hold_and_confirm(&self, shares: Vec<Share>, permit: u64) -> Result<Told, StoreError> {
        let id = self.draw();
        let micros = HOLD.as_micros() as u64;
        let again: Vec<Share> = shares.iter().map(Share::again).collect();
        let told = self.ask_each(shares, |_| Verb::Hold { permit, id, micros }).await;
        let passed = |told: &Result<(Vec<usize>, Told), StoreError>| matches!(told, Ok((_, Told::Statuses(standings))) if standings.iter().all(Standing::passes));
        if told.iter().all(passed) {
            let kept: Vec<Share> = again.iter().map(Share::again).collect();
            let confirmed = self.ask_each(again, |_| Verb::Confirm { id }).await;
            let is_confirmed = |told: &Result<(Vec<usize>, Told), StoreError>| matches!(told, Ok((_, Told::Number(found))) if *found > 0);
            if !confirmed.iter().all(is_confirmed) {
                let sure = kept.into_iter().zip(&told).zip(&confirmed).filter(|(_, told)| is_confirmed(told));
                self.give_back_confirmed(sure.map(|((share, told), _)| (share, told)));
                let lost = || StoreError::Unanswered {
                    why: "a hold ran out before it could be confirmed".to_owned(),
                };
                return Err(confirmed.into_iter().find_map(Result::err).unwrap_or_else(lost));
            }
            return in_order(told.into_iter().collect::<Result<_, _>>()?);
        }
        // Whoever holds something, or may, gives it back. An error among the answers is the set's.
        let held = again.into_iter().zip(&told).filter(|(_, told)| told.is_err() || passed(told));
        let untouched = self.ask_each(held.map(|(share, _)| share).collect(), |_| Verb::Abandon { id }).await;
        let mut answers: Vec<(Vec<usize>, Told)> = told.into_iter().collect::<Result<_, _>>()?;
        for (places, idle) in untouched.into_iter().flatten() {
            let Told::Statuses(idle) = idle else { continue };
            for (mine, told) in &mut answers {
                if let (true, Told::Statuses(standings)) = (*mine == places, told) {
                    standings.iter_mut().zip(&idle).for_each(|(standing, idle)| standing.show(idle));
                }
            }
        }
        in_order(answers)
    }

    /// Takes back what was confirmed of a set that as a whole was not.
    fn give_back_confirmed<'a>(
        &self,
        shares: impl Iterator<Item = (Share, &'a Result<(Vec<usize>, Told), StoreError>)>,
    ) {
        for (share, told) in shares {
            let Ok((_, Told::Statuses(standings))) = told else { continue };
            let taken = standings.iter().map(|standing| (standing.taken.clone(), ALL)).collect();
            self.tell(Question { verb: Verb::GiveBack { taken }, parts: share.parts });
        }
    }

    /// Asks every share at once. The answers, each with its places in the set.
    async fn ask_each(
        &self,
        shares: Vec<Share>,
        verb: impl Fn(&Share) -> Verb,
    ) -> Vec<Result<(Vec<usize>, Told), StoreError>> {
        // All are sent before the first answer is awaited.
        let asked: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let verb = verb(&share);
                let Share { group, parts, places } = share;
                (places, self.begin(group, Question { verb, parts }))
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        for (places, begun) in asked {
            answers.push(self.finish(begun).await.map(|told| (places, told)));
        }
        answers
    }

    fn shares(&self, parts: Vec<Part>) -> Vec<Share> {
        let mut shares: Vec<Share> = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            let group = self.shared.gatherer.link().group_of(&part.key);
            match shares.iter_mut().find(|share| share.group == group) {
                Some(share) => {
                    share.parts.push(part);
                    share.places.push(place);
                }
                None => shares.push(Share { group, parts: vec![part], places: vec![place] }),
            }
        }
        shares
    }
}

impl Share {
    fn again(&self) -> Self {
        Self { group: self.group, parts: self.parts.clone(), places: self.places.clone() }
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
}

fn pick(taken: &[(Taken, u64)], places: &[usize]) -> Vec<(Taken, u64)> {
    places.iter().filter_map(|place| taken.get(*place)).cloned().collect()
}

/// The standings of all shares, in the order of the set.
fn in_order(answers: Vec<(Vec<usize>, Told)>) -> Result<Told, StoreError> {
    let mut placed = Vec::new();
    for (places, told) in answers {
        match told {
            Told::Statuses(standings) => placed.extend(places.into_iter().zip(standings)),
            _ => return Err(nonsense()),
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    Ok(Told::Statuses(placed.into_iter().map(|(_, standing)| standing).collect()))
}
