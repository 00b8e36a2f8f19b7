//! One request, while its questions are asked: each value is read once, each check is made once.

use super::{
    checks::Test,
    expr::{Expr, Late, Questions},
    paths::ShapeId,
    scratch::{Scratch, Seen},
    subjects::{MISSING, Subject, SubjectId, ValueId},
};
use crate::{
    Request,
    model::{Attribute, OnRepeat},
    reading::{
        Repeated, Text, address_text, cookies, header, network_text, normal_host, pair_value, query_pairs,
        segments,
    },
};
use smallvec::SmallVec;

pub(super) struct Asking<'a, 'r> {
    pub(super) questions: &'a Questions,
    pub(super) request: &'a Request<'r>,
    /// The decoded path.
    pub(super) path: &'a str,
    pub(super) scratch: &'a mut Scratch,
    /// The shapes of the route, once it is found.
    pub(super) route: &'a [ShapeId],
    values: SmallVec<[Text<'a>; 8]>,
    query: Read,
    cookies: Read,
    /// What was read and is there more than once, where that is rejected.
    pub(super) repeated: Option<Box<Attribute>>,
}

/// Whether something was read already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Yes,
    NotYet,
}

impl<'a, 'r> Asking<'a, 'r> {
    pub(super) fn new(
        questions: &'a Questions,
        request: &'a Request<'r>,
        path: &'a str,
        scratch: &'a mut Scratch,
    ) -> Self {
        questions.paths.mark(path, scratch);
        Self {
            questions,
            request,
            path,
            scratch,
            route: &[],
            values: SmallVec::new(),
            query: Read::NotYet,
            cookies: Read::NotYet,
            repeated: None,
        }
    }

    pub(super) fn holds(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Always => true,
            Expr::Never => false,
            Expr::All(list) => list.iter().all(|expr| self.holds(expr)),
            Expr::Any(list) => list.iter().any(|expr| self.holds(expr)),
            Expr::Not(expr) => !self.holds(expr),
            Expr::Fact(fact) => self.scratch.holds(*fact),
            Expr::Equal(subject, value) => self.value(*subject) == *value,
            Expr::OneOf(subject, values) => values.binary_search(&self.value(*subject)).is_ok(),
            Expr::Check(check) => self.check(*check),
            Expr::Late(late) => self.late(&self.questions.lates[*late as usize]),
        }
    }

    /// Which of its known values the subject has.
    pub(super) fn value(&mut self, subject: SubjectId) -> ValueId {
        self.seen(subject).value
    }

    /// Every subject that the request has something of, other subjects perhaps among them.
    pub(super) fn present(&mut self) -> SmallVec<[SubjectId; 32]> {
        let subjects = &self.questions.subjects;
        let mut present: SmallVec<[SubjectId; 32]> = subjects.others().into();
        if subjects.headers_asked() {
            present.extend(self.request.headers.keys().filter_map(|name| subjects.header(name)));
        }
        if subjects.queries_asked() {
            present.extend(query_pairs(self.request.query).filter_map(|(name, _)| subjects.query(&name)));
        }
        if subjects.cookies_asked() {
            present.extend(cookies(self.request.headers).filter_map(|(name, _)| subjects.cookie(&name)));
        }
        present.sort_unstable();
        present.dedup();
        present
    }

    fn check(&mut self, id: u32) -> bool {
        if let Some(known) = self.scratch.checked(id) {
            return known;
        }
        let check = self.questions.checks.check(id);
        let holds = match (&check.test, self.questions.subjects.subject(check.subject)) {
            (Test::Time(span), _) => span.holds(self.request.at),
            (Test::Nets(nets), Subject::Address) => nets.holds(self.request.ip),
            (test, _) => {
                let seen = self.seen(check.subject);
                test.holds(self.text(seen))
            }
        };
        self.scratch.check(id, holds)
    }

    fn late(&self, late: &Late) -> bool {
        let value = self.captured(&late.own, &late.name).or_else(|| self.captured(self.route, &late.name));
        late.counts.so(late.test.holds(value))
    }

    fn text(&self, seen: Seen) -> Option<&str> {
        if seen.value == MISSING { None } else { self.values.get(seen.place as usize).map(Text::as_str) }
    }

    fn seen(&mut self, id: SubjectId) -> Seen {
        if let Some(seen) = self.scratch.seen(id) {
            return seen;
        }
        let text = match self.questions.subjects.subject(id) {
            Subject::Path => Some(self.path.into()),
            Subject::Method => Some(self.request.method.into()),
            Subject::Host => self.request.host.map(|host| normal_host(host).into()),
            Subject::Header(name) => {
                let value = header(self.request.headers, name, self.questions.on_repeat);
                let value = value.unwrap_or_else(|Repeated| {
                    self.repeated = Some(Box::new(Attribute::Header(name.clone())));
                    None
                });
                value.map(Text::Text)
            }
            Subject::Query(_) => {
                self.read_query();
                return self.scratch.seen(id).unwrap_or_else(|| self.see(id, None));
            }
            Subject::Cookie(_) => {
                self.read_cookies();
                return self.scratch.seen(id).unwrap_or_else(|| self.see(id, None));
            }
            Subject::Address => Some(Text::Address(address_text(self.request.ip))),
            Subject::Network(bits) => Some(Text::Address(network_text(self.request.ip, *bits))),
            Subject::Capture(own, route, name) => {
                self.captured(own, name).or_else(|| self.captured(route, name)).map(Text::from)
            }
            Subject::Nothing => None,
        };
        self.see(id, text)
    }

    fn see(&mut self, id: SubjectId, text: Option<Text<'a>>) -> Seen {
        let value = self.questions.subjects.value(id, text.as_ref().map(Text::as_str));
        let place = self.values.len() as u32;
        self.values.extend(text);
        self.scratch.see(id, value, place)
    }

    /// Reads the whole query once, however many parameters are asked for.
    fn read_query(&mut self) {
        if std::mem::replace(&mut self.query, Read::Yes) == Read::Yes {
            return;
        }
        for (name, value) in query_pairs(self.request.query) {
            if let Some(id) = self.questions.subjects.query(&name)
                && self.counts(id, || Attribute::Query(name.into_owned()))
            {
                self.see(id, Some(pair_value(value).into()));
            }
        }
    }

    fn read_cookies(&mut self) {
        if std::mem::replace(&mut self.cookies, Read::Yes) == Read::Yes {
            return;
        }
        for (name, value) in cookies(self.request.headers) {
            if let Some(id) = self.questions.subjects.cookie(&name)
                && self.counts(id, || Attribute::Cookie(name.into_owned()))
            {
                self.see(id, Some(value.into()));
            }
        }
    }

    /// Whether a value of the query or of a cookie counts, which may be there more than once.
    fn counts(&mut self, id: SubjectId, attribute: impl FnOnce() -> Attribute) -> bool {
        match (self.scratch.seen(id), self.questions.on_repeat) {
            (None, _) | (Some(_), OnRepeat::Last) => true,
            (Some(_), OnRepeat::First) => false,
            (Some(_), OnRepeat::Reject) => {
                self.repeated = Some(Box::new(attribute()));
                false
            }
        }
    }

    /// What the first of these shapes that fits the path, and has a part of that name, captured.
    fn captured(&self, shapes: &[ShapeId], name: &str) -> Option<&'a str> {
        let paths = &self.questions.paths;
        let mut fitting = shapes.iter().filter(|shape| self.scratch.holds(paths.fact(**shape)));
        fitting.find_map(|shape| paths.shape(*shape).capture(&segments(self.path), name))
    }
}
