//! Who keeps the books of the doors: metrics, the busiest keys.

use tollgate::{Key, SetStatus, Throttled};

/// Through which door a question came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoorName {
    /// Redis clients.
    Resp,
    /// JSON over HTTP.
    Http,
    /// Envoy's rate limit service.
    Grpc,
}

impl DoorName {
    /// As the rule file calls it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }
}

/// Keeps the books. Called on the hot path.
pub trait Ledger: Send + Sync + 'static {
    /// A set of charges was decided.
    fn answered(&self, answered: &Answered<'_>);

    /// Nobody could decide about these, and no policy does instead. Told as [`Answered::asked`] is.
    fn unanswered(&self, _door: DoorName, _asked: &[(Option<usize>, Key<'_>, u32)]) {}

    /// A descriptor was told how it stands, or could not be.
    fn described(&self, described: &Described<'_>) {
        let _ = described;
    }

    /// A cell was asked, whose numbers came with the question.
    fn throttled(&self, throttled: &CellAnswered<'_>) {
        let _ = throttled;
    }
}

/// A descriptor of Envoy's that something limits, and how it stood.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// Its rule, by the place among all of the domains; `None` for a limit that came with the question.
    pub rule: Option<usize>,
    /// Whose bucket.
    pub key: Key<'a>,
    /// How many hits; none where it was only asked, or hits were given back.
    pub hits: u32,
    /// How it stood.
    pub stood: Stood,
}

/// How a descriptor stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stood {
    /// Within its limit.
    Within,
    /// Over it.
    Over,
    /// Over it, and its rule refuses nobody.
    Shadow,
    /// The global switch is off: nobody was asked.
    Skipped,
    /// Nobody could decide, and no policy does instead.
    Unanswered,
}

/// A cell that was asked.
#[derive(Clone, Copy, Debug)]
pub struct CellAnswered<'a> {
    /// Through which door.
    pub door: DoorName,
    /// Whose cell.
    pub key: Key<'a>,
    /// How many units; none where it was only asked, and below zero where they were given back.
    pub units: i64,
    /// How it was decided.
    pub told: &'a Throttled,
    /// Whether the global switch is off, so that nobody was asked.
    pub skipped: bool,
}

/// A set of charges that was decided.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// Through which door.
    pub door: DoorName,
    /// What was asked: the limit by its place in the rule file (`None` for one that came with the question), whose bucket, how
    /// many units.
    pub asked: &'a [(Option<usize>, Key<'a>, u32)],
    /// How it was decided.
    pub status: &'a SetStatus,
    /// Whether the global switch is off, so that nobody was asked.
    pub skipped: bool,
}

/// Keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn answered(&self, _: &Answered<'_>) {}
}
