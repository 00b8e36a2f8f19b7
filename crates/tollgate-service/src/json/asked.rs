//! Questions as they are written, read strictly: every field is known, stands there once, and is what it should be.

use serde::{Deserialize, Deserializer};
use smallvec::{SmallVec, smallvec};
use std::{borrow::Cow, num::NonZeroU32, time::Duration};
use tollgate_rules::json::{JsonError, KeyText, Node, expected, present, whole};

/// Charges in one set.
pub(super) const MOST_CHARGES: usize = 64;

/// Questions in one call.
pub(super) const MOST_CHECKS: usize = 128;

/// Bytes of an `id`.
pub(super) const LONGEST_ID: usize = 128;

/// The longest that somebody may wait for a turn.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Which fields a question may have beside its charges.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `POST /v1/check`.
    Check,
    /// `POST /v1/peek`.
    Peek,
    /// `POST /v1/wait`.
    Wait,
    /// `POST /v1/permits`.
    Permits,
    /// `POST /v1/refund`.
    Refund,
    /// `POST /v1/reset`.
    Reset,
}

/// A body: one question or several.
pub(super) struct Body<'a> {
    pub(super) questions: SmallVec<[Asked<'a>; 1]>,
    /// Whether they came as `checks`.
    pub(super) is_batch: bool,
}

/// One question: charges that are decided together.
pub(super) struct Asked<'a> {
    pub(super) charges: SmallVec<[ChargeText<'a>; 1]>,
    /// Whether they came as `charges`.
    pub(super) is_set: bool,
    /// Its place among `checks`.
    check: Option<usize>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) up_to: Option<Duration>,
}

/// One charge.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = r#"an object such as {"limit":"per-client","key":"alice","cost":1}"#
)]
pub(super) struct ChargeText<'a> {
    #[serde(borrow)]
    pub(super) limit: LimitText<'a>,
    #[serde(borrow, default)]
    pub(super) key: KeyText<'a>,
    /// Units, whether they are charged or given back.
    #[serde(default = "one")]
    pub(super) cost: u32,
}

/// Which limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LimitText<'a> {
    Name(Cow<'a, str>),
    /// A definition, as JSON.
    Defined(String),
}

/// All fields that a question of any form may have.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = r#"an object such as {"limit":"per-client","key":"alice","cost":1}"#
)]
struct Fields<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    limit: Option<LimitText<'a>>,
    #[serde(borrow, default)]
    key: KeyText<'a>,
    #[serde(default = "one")]
    cost: u32,
    #[serde(default, deserialize_with = "present")]
    units: Option<NonZeroU32>,
    #[serde(borrow, default, deserialize_with = "id")]
    id: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "up_to")]
    up_to_ms: Option<Duration>,
    #[serde(borrow, default, deserialize_with = "present")]
    charges: Option<Vec<ChargeText<'a>>>,
}

/// What a list of questions or charges cannot stand beside.
const OF_ONE_CHARGE: [&str; 3] = ["limit", "key", "cost"];

const fn one() -> u32 {
    1
}

fn id<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    match Node::deserialize(from)? {
        Node::Text(id) if (1..=LONGEST_ID).contains(&id.len()) => Ok(Some(id)),
        _ => Err(expected("text of 1 to 128 bytes that no other question has")),
    }
}

fn up_to<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let most = LONGEST_WAIT.as_secs() * 1_000;
    whole(from, "a whole number of milliseconds", 0..=most).map(|millis| Some(Duration::from_millis(millis)))
}

impl<'de: 'a, 'a> Deserialize<'de> for LimitText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Node::deserialize(from)? {
            Node::Text(name) => Ok(Self::Name(name)),
            definition @ Node::Object(_) => Ok(Self::Defined(definition.to_json())),
            _ => Err(expected("the name of a limit, or its definition")),
        }
    }
}

impl<'a> Body<'a> {
    /// Reads the body of a question.
    pub(super) fn parse(text: &'a [u8], form: Form) -> Result<Self, JsonError> {
        let node = Node::parse(text)?;
        let Some(checks) = node.get("checks").filter(|_| form.comes_in_batches()) else {
            return Ok(Self { questions: smallvec![Asked::read(&node, form, None)?], is_batch: false });
        };
        stands_alone(&node, "checks")?;
        node.only(&["checks"])?;
        let checks = checks.list().map_err(|error| error.in_field("checks"))?;
        within("checks", checks.len(), MOST_CHECKS)?;
        let read = |(index, check)| {
            let read = Asked::read(check, form, Some(index));
            read.map_err(|error| error.in_item(index).in_field("checks"))
        };
        let questions = checks.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { questions, is_batch: true })
    }
}

impl<'a> Asked<'a> {
    fn read(node: &Node<'a>, form: Form, check: Option<usize>) -> Result<Self, JsonError> {
        let is_set = form.has_sets() && node.get("charges").is_some();
        if is_set {
            stands_alone(node, "charges")?;
        }
        node.only(form.known(check.is_some()))?;
        let Fields { limit, key, cost, units, id, up_to_ms, charges } = node.read()?;
        let missing = |field, what| JsonError::new(field, format!("is missing; {what}"));
        if form == Form::Wait && up_to_ms.is_none() {
            return Err(missing("up_to_ms", "say how long to wait, such as 1000"));
        }
        let charges = match charges {
            Some(charges) => {
                within("charges", charges.len(), MOST_CHARGES)?;
                SmallVec::from_vec(charges)
            }
            None => {
                let limit =
                    limit.ok_or_else(|| missing("limit", "give the name of a limit, or its definition"))?;
                let cost = match (form, units) {
                    (Form::Refund, Some(units)) => units.get(),
                    (Form::Refund, None) => {
                        return Err(missing("units", "say how many to give back, such as 1"));
                    }
                    (Form::Reset, _) => 0,
                    _ => cost,
                };
                smallvec![ChargeText { limit, key, cost }]
            }
        };
        Ok(Self { charges, is_set, check, id, up_to: up_to_ms })
    }

    /// These charges, as they stand in a permit's name.
    pub(super) fn of(charges: SmallVec<[ChargeText<'a>; 1]>) -> Self {
        Self { charges, is_set: false, check: None, id: None, up_to: None }
    }

    /// What is wrong with one of its charges, when that turns out later.
    pub(super) fn mistake(&self, charge: usize, field: &str, message: impl Into<String>) -> JsonError {
        let mut error = JsonError::new(field, message);
        if self.is_set {
            error = error.in_item(charge).in_field("charges");
        }
        match self.check {
            Some(index) => error.in_item(index).in_field("checks"),
            None => error,
        }
    }
}

/// Refuses the fields of one charge beside a list.
fn stands_alone(node: &Node<'_>, list: &str) -> Result<(), JsonError> {
    match OF_ONE_CHARGE.into_iter().find(|name| node.get(name).is_some()) {
        Some(name) => {
            let message = format!("stands beside {list:?}; put it inside, or leave out {list:?}");
            Err(JsonError::new(name, message))
        }
        None => Ok(()),
    }
}

/// Refuses a list that is empty or too long.
fn within(list: &str, many: usize, most: usize) -> Result<(), JsonError> {
    match many {
        0 => Err(JsonError::new(list, "is empty; there is nothing to ask")),
        _ if many > most => {
            Err(JsonError::new(list, format!("has {many} items; ask for at most {most} at once")))
        }
        _ => Ok(()),
    }
}

impl Form {
    const fn comes_in_batches(self) -> bool {
        matches!(self, Self::Check | Self::Peek)
    }

    const fn has_sets(self) -> bool {
        !matches!(self, Self::Refund | Self::Reset)
    }

    /// The fields there may be.
    const fn known(self, is_item: bool) -> &'static [&'static str] {
        match self {
            Self::Check if is_item => &["limit", "key", "cost", "id", "charges"],
            Self::Check => &["limit", "key", "cost", "id", "charges", "checks"],
            Self::Peek if is_item => &["limit", "key", "cost", "charges"],
            Self::Peek => &["limit", "key", "cost", "charges", "checks"],
            Self::Wait | Self::Permits => &["limit", "key", "cost", "up_to_ms", "charges"],
            Self::Refund => &["limit", "key", "units"],
            Self::Reset => &["limit", "key"],
        }
    }
}
