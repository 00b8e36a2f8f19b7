//! Conditions as they are evaluated: every question is a number, and lists of alternatives are one question where they
//! can be.

use super::{
    checks::{CheckId, Checks, Counts, Test, address_of},
    paths::{Fact, Paths, ShapeId},
    subjects::{Subject, SubjectId, Subjects, ValueId, Whole},
};
use crate::model::{Attribute, Matcher, OnRepeat, When};
use ipnet::IpNet;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Expr {
    Always,
    Never,
    All(Box<[Expr]>),
    Any(Box<[Expr]>),
    Not(Box<Expr>),
    /// The path is so.
    Fact(Fact),
    /// The subject has this value.
    Equal(SubjectId, ValueId),
    /// The subject has one of these values, which are in order.
    OneOf(SubjectId, Box<[ValueId]>),
    Check(CheckId),
    /// A capture in a rule of every route: which shape counts is known when the route is.
    Late(u32),
}

pub(super) struct Late {
    pub(super) own: Shapes,
    pub(super) name: String,
    pub(super) test: Test,
    pub(super) counts: Counts,
}

/// Everything that conditions ask, each question once.
#[derive(Default)]
pub(super) struct Questions {
    pub(super) paths: Paths,
    pub(super) subjects: Subjects,
    pub(super) checks: Checks,
    pub(super) lates: Vec<Late>,
    /// Which of several equal values counts.
    pub(super) on_repeat: OnRepeat,
}

/// Shapes, shared by all that look at their captures.
pub(super) type Shapes = Arc<[ShapeId]>;

/// Whose captures count where a condition stands: its own shapes', then the route's.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) own: &'a Shapes,
    /// `None` where it is not known which route it will be.
    pub(super) route: Option<&'a Shapes>,
}

impl Questions {
    /// The shapes whose captures a condition offers: those it wants, in the order they are written.
    pub(super) fn shapes(&mut self, when: &When) -> Shapes {
        let mut shapes = Vec::new();
        self.collect_shapes(when, &mut shapes);
        shapes.into()
    }

    fn collect_shapes(&mut self, when: &When, shapes: &mut Vec<ShapeId>) {
        match when {
            When::All(list) | When::Any(list) => {
                list.iter().for_each(|when| self.collect_shapes(when, shapes));
            }
            When::Is(Attribute::Path, Matcher::Glob(pattern)) => {
                let shape = self.paths.shaped(pattern);
                if self.paths.shape(shape).names().next().is_some() {
                    shapes.push(shape);
                }
            }
            _ => {}
        }
    }

    pub(super) fn expr(&mut self, when: &When, scope: Scope<'_>) -> Expr {
        match when {
            When::Always => Expr::Always,
            When::All(list) => all(list.iter().map(|when| self.expr(when, scope)).collect()),
            When::Any(list) => {
                let alternatives = list.iter().map(|when| self.alternative(when, scope)).collect();
                self.any(alternatives)
            }
            When::Not(when) => not(self.expr(when, scope)),
            When::Is(attribute, matcher) => self.is(attribute, matcher, scope),
            When::Time(span) => {
                let nothing = self.subjects.add(Subject::Nothing);
                Expr::Check(self.checks.add_time(nothing, span))
            }
        }
    }

    fn is(&mut self, attribute: &Attribute, matcher: &Matcher, scope: Scope<'_>) -> Expr {
        match (attribute, matcher) {
            (Attribute::Path, Matcher::Glob(pattern)) => {
                let shape = self.paths.shaped(pattern);
                return Expr::Fact(self.paths.fact(shape));
            }
            (Attribute::Path, Matcher::Exact(text)) => return Expr::Fact(self.paths.exactly(text)),
            (Attribute::Path, Matcher::Prefix(text)) => return Expr::Fact(self.paths.beginning(text)),
            _ => {}
        }
        let subject = match (attribute, scope.route) {
            (Attribute::Capture(name), Some(route)) => {
                Subject::Capture(Arc::clone(scope.own), Arc::clone(route), name.clone())
            }
            (Attribute::Capture(name), None) => {
                let (test, counts) = Test::new(&Subject::Nothing, matcher);
                let own = Arc::clone(scope.own);
                self.lates.push(Late { own, name: name.clone(), test, counts });
                return Expr::Late(self.lates.len() as u32 - 1);
            }
            _ => Subject::new(attribute),
        };
        let id = self.subjects.add(subject.clone());
        match matcher {
            Matcher::Exact(text) if address_of(&subject, text).is_none() => {
                Expr::Equal(id, self.subjects.add_value(id, subject.spelled(text, Whole::Yes)))
            }
            _ => {
                let (check, counts) = self.checks.add(id, &subject, matcher);
                match counts {
                    Counts::AsItIs => Expr::Check(check),
                    Counts::Reversed => Expr::Not(Box::new(Expr::Check(check))),
                }
            }
        }
    }

    /// An alternative of several; networks stay what they are, to be put together.
    fn alternative(&mut self, when: &When, scope: Scope<'_>) -> Alternative {
        match when {
            When::Is(Attribute::Ip, Matcher::Net(net)) => Alternative::Net(*net),
            _ => Alternative::Expr(self.expr(when, scope)),
        }
    }

    fn any(&mut self, alternatives: Vec<Alternative>) -> Expr {
        let mut exprs = Vec::new();
        let mut nets = Vec::new();
        for alternative in alternatives {
            match alternative {
                Alternative::Net(net) => nets.push(net),
                Alternative::Expr(Expr::Always) => return Expr::Always,
                Alternative::Expr(Expr::Never) => {}
                Alternative::Expr(Expr::Any(inner)) => exprs.extend(inner),
                Alternative::Expr(expr) => exprs.push(expr),
            }
        }
        if !nets.is_empty() {
            let address = self.subjects.add(Subject::Address);
            exprs.push(Expr::Check(self.checks.add_nets(address, nets)));
        }
        let mut exprs = equals_joined(exprs);
        match exprs.len() {
            0 => Expr::Never,
            1 => exprs.remove(0),
            _ => Expr::Any(exprs.into()),
        }
    }

    pub(super) fn finish(&mut self) {
        self.paths.finish();
        self.checks.finish();
    }
}

enum Alternative {
    Net(IpNet),
    Expr(Expr),
}

fn all(exprs: Vec<Expr>) -> Expr {
    let mut flat = Vec::with_capacity(exprs.len());
    for expr in exprs {
        match expr {
            Expr::Never => return Expr::Never,
            Expr::Always => {}
            Expr::All(inner) => flat.extend(inner),
            expr => flat.push(expr),
        }
    }
    match flat.len() {
        0 => Expr::Always,
        1 => flat.remove(0),
        _ => Expr::All(flat.into()),
    }
}

fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Always => Expr::Never,
        Expr::Never => Expr::Always,
        Expr::Not(inner) => *inner,
        expr => Expr::Not(Box::new(expr)),
    }
}

/// Alternatives that compare one subject with several texts become one.
fn equals_joined(exprs: Vec<Expr>) -> Vec<Expr> {
    let mut equals: Vec<(SubjectId, ValueId)> = Vec::new();
    let mut joined = Vec::new();
    for expr in exprs {
        match expr {
            Expr::Equal(subject, value) => equals.push((subject, value)),
            Expr::OneOf(subject, values) => equals.extend(values.iter().map(|&value| (subject, value))),
            expr => joined.push(expr),
        }
    }
    equals.sort_unstable();
    equals.dedup();
    for same in equals.chunk_by(|(a, _), (b, _)| a == b) {
        joined.push(match same {
            [(subject, value)] => Expr::Equal(*subject, *value),
            _ => Expr::OneOf(same[0].0, same.iter().map(|(_, value)| *value).collect()),
        });
    }
    joined
}
