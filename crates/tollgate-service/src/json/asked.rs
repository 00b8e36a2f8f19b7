//! Questions as they are written, read strictly: every field is known, stands there once, and is what it should be.

use super::{
    mistake::{Mistake, Path},
    node::Node,
};
use smallvec::SmallVec;
use std::{borrow::Cow, time::Duration};

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
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChargeText<'a> {
    pub(super) limit: LimitText<'a>,
    pub(super) key: KeyText<'a>,
    /// Units, whether they are charged or given back.
    pub(super) cost: u32,
}

/// Which limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LimitText<'a> {
    Name(Cow<'a, str>),
    /// A definition, as JSON.
    Defined(String),
}

/// Whose bucket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyText<'a> {
    All,
    Text(Cow<'a, str>),
    List(SmallVec<[Option<Cow<'a, str>>; 2]>),
}

impl<'a> Body<'a> {
    /// Reads the body of a question.
    pub(super) fn parse(text: &'a [u8], form: Form) -> Result<Self, Mistake> {
        let node = Node::parse(text).map_err(|error| Mistake::not_json(&error))?;
        let mut fields = Fields::of(node, Path::Root)?;
        if !form.comes_in_batches() || !fields.has("checks") {
            let question = Asked::read(fields, form, None)?;
            return Ok(Self { questions: SmallVec::from_buf([question]), is_batch: false });
        }
        let path = Path::Field(&Path::Root, "checks");
        let checks = fields.list("checks", MOST_CHECKS)?;
        fields.finish(&["checks"])?;
        let mut questions = SmallVec::with_capacity(checks.len());
        for (index, check) in checks.into_iter().enumerate() {
            let fields = Fields::of(check, Path::Item(&path, index))?;
            questions.push(Asked::read(fields, form, Some(index))?);
        }
        Ok(Self { questions, is_batch: true })
    }
}

impl<'a> Asked<'a> {
    fn read(mut fields: Fields<'_, 'a>, form: Form, check: Option<usize>) -> Result<Self, Mistake> {
        let id = if form == Form::Check { fields.id()? } else { None };
        let up_to = match form {
            Form::Wait | Form::Permits => fields.up_to()?,
            _ => None,
        };
        if form == Form::Wait && up_to.is_none() {
            return Err(fields.at("up_to_ms").mistake("is missing; say how long to wait, such as 1000"));
        }
        let is_set = form.has_sets() && fields.has("charges");
        let charges = if is_set {
            let items = fields.list("charges", MOST_CHARGES)?;
            let path = fields.at("charges");
            let items = items.into_iter().enumerate();
            let read = |(index, item)| ChargeText::read(Fields::of(item, Path::Item(&path, index))?);
            items.map(read).collect::<Result<_, _>>()?
        } else {
            SmallVec::from_buf([ChargeText::take(&mut fields, form, form.known(false, check.is_some()))?])
        };
        fields.finish(form.known(is_set, check.is_some()))?;
        Ok(Self { charges, is_set, check, id, up_to })
    }

    /// These charges, as they stand in a permit's name.
    pub(super) fn of(charges: SmallVec<[ChargeText<'a>; 1]>) -> Self {
        Self { charges, is_set: false, check: None, id: None, up_to: None }
    }

    /// What is wrong with one of its charges, when that turns out later.
    pub(super) fn mistake(&self, charge: usize, field: &str, message: impl Into<String>) -> Mistake {
        let checks = Path::Field(&Path::Root, "checks");
        let root = self.check.map_or(Path::Root, |index| Path::Item(&checks, index));
        let charges = Path::Field(&root, "charges");
        let at = if self.is_set { Path::Item(&charges, charge) } else { root };
        Path::Field(&at, field).mistake(message)
    }
}

impl<'a> ChargeText<'a> {
    fn read(mut fields: Fields<'_, 'a>) -> Result<Self, Mistake> {
        const KNOWN: [&str; 3] = ["limit", "key", "cost"];
        let charge = Self::take(&mut fields, Form::Check, &KNOWN)?;
        fields.finish(&KNOWN)?;
        Ok(charge)
    }

    fn take(fields: &mut Fields<'_, 'a>, form: Form, known: &[&str]) -> Result<Self, Mistake> {
        let limit = fields.limit(known)?;
        let key = fields.key()?;
        let cost = match form {
            Form::Refund => match fields.whole("units", 1)? {
                Some(units) => units,
                None => {
                    return Err(fields
                        .at("units")
                        .mistake("is missing; say how many to give back, such as 1"));
                }
            },
            Form::Reset => 0,
            _ => fields.whole("cost", 0)?.unwrap_or(1),
        };
        Ok(Self { limit, key, cost })
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
    const fn known(self, is_set: bool, is_item: bool) -> &'static [&'static str] {
        match (self, is_set) {
            (Self::Check, false) if is_item => &["limit", "key", "cost", "id", "charges"],
            (Self::Check, false) => &["limit", "key", "cost", "id", "charges", "checks"],
            (Self::Check, true) => &["charges", "id"],
            (Self::Peek, false) if is_item => &["limit", "key", "cost", "charges"],
            (Self::Peek, false) => &["limit", "key", "cost", "charges", "checks"],
            (Self::Peek, true) => &["charges"],
            (Self::Wait | Self::Permits, false) => &["limit", "key", "cost", "up_to_ms", "charges"],
            (Self::Wait | Self::Permits, true) => &["charges", "up_to_ms"],
            (Self::Refund, _) => &["limit", "key", "units"],
            (Self::Reset, _) => &["limit", "key"],
        }
    }
}

/// The fields of one object.
struct Fields<'p, 'a> {
    path: Path<'p>,
    fields: Vec<(Cow<'a, str>, Node<'a>)>,
    /// What was read so far: it must not be there again.
    taken: SmallVec<[&'static str; 6]>,
}

impl<'p, 'a> Fields<'p, 'a> {
    fn of(node: Node<'a>, path: Path<'p>) -> Result<Self, Mistake> {
        const EXAMPLE: &str = r#"an object such as {"limit":"per-client","key":"alice","cost":1}"#;
        match node {
            Node::Object(fields) => Ok(Self { path, fields, taken: SmallVec::new() }),
            other if matches!(path, Path::Root) => {
                Err(path.mistake(format!("the body must be {EXAMPLE}; read {}", other.shown())))
            }
            other => Err(path.must(EXAMPLE, &other)),
        }
    }

    fn at<'s>(&'s self, name: &'s str) -> Path<'s> {
        Path::Field(&self.path, name)
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    fn take(&mut self, name: &'static str) -> Option<Node<'a>> {
        let index = self.fields.iter().position(|(field, _)| field == name)?;
        self.taken.push(name);
        Some(self.fields.swap_remove(index).1)
    }

    /// Nothing may be left.
    fn finish(&self, known: &[&str]) -> Result<(), Mistake> {
        let Some((name, _)) = self.fields.first() else { return Ok(()) };
        Err(if self.taken.contains(&&**name) {
            self.at(name).mistake("is given twice; leave one of them")
        } else {
            let beside = self.taken.iter().find(|taken| ["charges", "checks"].contains(taken));
            match beside {
                Some(list) if ["limit", "key", "cost"].contains(&&**name) => self
                    .at(name)
                    .mistake(format!("stands beside {list:?}; put it inside, or leave out {list:?}")),
                _ => self.path.unknown(name, known),
            }
        })
    }

    fn limit(&mut self, known: &[&str]) -> Result<LimitText<'a>, Mistake> {
        const WHAT: &str = "the name of a limit, or its definition";
        match self.take("limit") {
            Some(Node::Text(name)) => Ok(LimitText::Name(name)),
            Some(object @ Node::Object(_)) => Ok(LimitText::Defined(object.to_json())),
            Some(other) => Err(self.at("limit").must(WHAT, &other)),
            // What stands there instead was perhaps meant to be it.
            None => Err(match self.fields.iter().find(|(name, _)| !known.contains(&&**name)) {
                Some((name, _)) => self.path.unknown(name, known),
                None => self.at("limit").mistake(format!("is missing; give {WHAT}")),
            }),
        }
    }

    fn key(&mut self) -> Result<KeyText<'a>, Mistake> {
        const WHAT: &str = "text, or a list of texts and nulls; left out, it is one bucket for all";
        match self.take("key") {
            None => Ok(KeyText::All),
            Some(Node::Text(text)) => Ok(KeyText::Text(text)),
            Some(Node::List(items)) => {
                let at = self.at("key");
                let value = |(index, item)| match item {
                    Node::Text(text) => Ok(Some(text)),
                    Node::Null => Ok(None),
                    other => Err(Path::Item(&at, index).must("text or null", &other)),
                };
                Ok(KeyText::List(items.into_iter().enumerate().map(value).collect::<Result<_, _>>()?))
            }
            Some(other) => Err(self.at("key").must(WHAT, &other)),
        }
    }

    fn id(&mut self) -> Result<Option<Cow<'a, str>>, Mistake> {
        match self.take("id") {
            None => Ok(None),
            Some(Node::Text(id)) if (1..=LONGEST_ID).contains(&id.len()) => Ok(Some(id)),
            Some(other) => {
                Err(self.at("id").must("text of 1 to 128 bytes that no other question has", &other))
            }
        }
    }

    fn up_to(&mut self) -> Result<Option<Duration>, Mistake> {
        let most = LONGEST_WAIT.as_millis();
        match self.take("up_to_ms") {
            None => Ok(None),
            Some(Node::Whole(millis)) if u128::from(millis) <= most => {
                Ok(Some(Duration::from_millis(millis)))
            }
            Some(other) => {
                let what = format!("a whole number of milliseconds from 0 to {most}");
                Err(self.at("up_to_ms").must(&what, &other))
            }
        }
    }

    fn whole(&mut self, name: &'static str, least: u32) -> Result<Option<u32>, Mistake> {
        let Some(node) = self.take(name) else { return Ok(None) };
        let number = match node {
            Node::Whole(number) => u32::try_from(number).ok().filter(|number| *number >= least),
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => {
                let what = format!("a whole number from {least} to {}", u32::MAX);
                Err(self.at(name).must(&what, &node))
            }
        }
    }

    fn list(&mut self, name: &'static str, most: usize) -> Result<Vec<Node<'a>>, Mistake> {
        match self.take(name) {
            Some(Node::List(items)) if items.is_empty() => {
                Err(self.at(name).mistake("is empty; there is nothing to ask"))
            }
            Some(Node::List(items)) if items.len() > most => {
                let many = items.len();
                Err(self.at(name).mistake(format!("has {many} items; ask for at most {most} at once")))
            }
            Some(Node::List(items)) => Ok(items),
            other => Err(self.at(name).must("a list", &other.unwrap_or(Node::Null))),
        }
    }
}
