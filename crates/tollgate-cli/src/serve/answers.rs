//! The books of the doors that answer questions: metrics by door and limit, the busiest keys.

use tollgate::{Decision, Key};
use tollgate_admin::{AnswerMeter, KeyMeter, Meters, Outcome, Sketch};
use tollgate_rules::Program;
use tollgate_service::{Answered, CellAnswered, Described, DoorName, Ledger, Stood};

/// What all limits are called that came with their question: there are as many as somebody cares to send.
const DEFINED: &str = "(defined)";
/// What all cells are called, whose numbers come with every question.
const CELL: &str = "(cell)";

/// Books for one edition of the rules: every handle is at hand, nothing is looked up by name.
pub(super) struct AnswerBooks {
    doors: Vec<(DoorName, PerLimit<AnswerMeter>)>,
    keys: PerLimit<KeyMeter>,
    /// Of `CL.THROTTLE`, where Redis clients are let in.
    cells: Option<(AnswerMeter, KeyMeter)>,
    /// Of Envoy's descriptors, by the place of their rule, where Envoy is let in; last, limits that came with the question.
    descriptors: Vec<(AnswerMeter, KeyMeter)>,
}

/// Something for every limit of the file, by its place there, and for those that come with questions.
struct PerLimit<T> {
    named: Vec<T>,
    defined: T,
}

impl AnswerBooks {
    /// Books for these doors.
    pub(super) fn new(program: &Program, doors: &[DoorName], meters: &Meters, sketch: &Sketch) -> Self {
        let of_door =
            |door: &DoorName| (*door, PerLimit::new(program, |it| meters.answers(door.as_str(), it)));
        Self {
            doors: doors.iter().map(of_door).collect(),
            keys: PerLimit::new(program, |limit| sketch.limit(limit)),
            cells: doors
                .contains(&DoorName::Resp)
                .then(|| (meters.answers(DoorName::Resp.as_str(), CELL), sketch.limit(CELL))),
            descriptors: match doors.contains(&DoorName::Grpc) {
                true => descriptors(program, meters, sketch),
                false => Vec::new(),
            },
        }
    }

    fn count(&self, door: DoorName, place: Option<usize>, outcome: Outcome) {
        if let Some((_, limits)) = self.doors.iter().find(|(name, _)| *name == door) {
            limits.at(place).count(outcome);
        }
    }
}

/// Named as envoyproxy/ratelimit names them, by what the files say: what clients sent is in no label.
fn descriptors(program: &Program, meters: &Meters, sketch: &Sketch) -> Vec<(AnswerMeter, KeyMeter)> {
    let meter = |name: &str| (meters.answers(DoorName::Grpc.as_str(), name), sketch.limit(name));
    let rules = program.file().domains.rules().iter().map(|rule| meter(&rule.full_key()));
    rules.chain([meter(DEFINED)]).collect()
}

impl<T> PerLimit<T> {
    fn new(program: &Program, make: impl Fn(&str) -> T) -> Self {
        let named = program.file().limits.iter().map(|limit| make(&limit.name)).collect();
        Self { named, defined: make(DEFINED) }
    }

    /// A question that was asked while the rules were changed may name a place that these do not have.
    fn at(&self, place: Option<usize>) -> &T {
        place.and_then(|place| self.named.get(place)).unwrap_or(&self.defined)
    }
}

impl Ledger for AnswerBooks {
    fn answered(&self, answered: &Answered<'_>) {
        let passed = match answered.status.decision() {
            _ if answered.skipped => Some(Outcome::Skip),
            Decision::Allow => Some(Outcome::Allow),
            Decision::Wait(_) => Some(Outcome::Wait),
            Decision::Deny(_) => None,
        };
        for ((place, key, cost), status) in answered.asked.iter().zip(answered.status.statuses()) {
            match passed {
                Some(outcome) => {
                    self.count(answered.door, *place, outcome);
                    if *cost > 0 && outcome != Outcome::Skip {
                        self.keys.at(*place).used(*key, u64::from(*cost));
                    }
                }
                // Of a set that is refused those limits are counted that refuse it.
                None if status.is_deny() => {
                    self.count(answered.door, *place, Outcome::Reject);
                    self.keys.at(*place).refused(*key);
                }
                None => {}
            }
        }
    }

    fn described(&self, described: &Described<'_>) {
        let own = described.rule.and_then(|place| self.descriptors.get(place));
        let Some((answers, keys)) = own.or(self.descriptors.last()) else { return };
        let outcome = match described.stood {
            Stood::Within => Outcome::Allow,
            Stood::Over => Outcome::Reject,
            Stood::Shadow => Outcome::Shadow,
            Stood::Skipped => Outcome::Skip,
            Stood::Unanswered => Outcome::Error,
        };
        answers.count(outcome);
        match described.stood {
            Stood::Within if described.hits > 0 => keys.used(described.key, described.hits.into()),
            Stood::Over | Stood::Shadow => keys.refused(described.key),
            Stood::Within | Stood::Skipped | Stood::Unanswered => {}
        }
    }

    fn throttled(&self, asked: &CellAnswered<'_>) {
        let Some((answers, keys)) = &self.cells else { return };
        if asked.skipped {
            answers.count(Outcome::Skip);
        } else if asked.told.is_allow() {
            answers.count(Outcome::Allow);
            if let Ok(units @ 1..) = u64::try_from(asked.units) {
                // Anybody may ask for as many as there are numbers.
                keys.used(asked.key, units.min(u32::MAX.into()));
            }
        } else {
            answers.count(Outcome::Reject);
            keys.refused(asked.key);
        }
    }

    fn unanswered(&self, door: DoorName, asked: &[(Option<usize>, Key<'_>, u32)]) {
        for (place, _, _) in asked {
            self.count(door, *place, Outcome::Error);
        }
    }
}
