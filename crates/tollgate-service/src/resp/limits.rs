//! `TG.*`: the limits of the rule file, by name.
//!
//! A key is one value, or several after the word `KEYS` and how many they are. The word counts as such only where there are more
//! arguments than a key of one value has, so that a key may be called so.

use super::{
    answer::{LazySession, failed},
    cells::whole,
    command::{Spec, Verb},
    parse::Request,
    reply::{Reply, echoed},
};
use smallvec::SmallVec;
use std::{num::NonZeroU64, time::Duration};
use tollgate::{Cells, Decision, Enter, Key, Limit, PermitId, Retry, Status};
use tollgate_rules::decision::{ChargeRequest, DecisionError, Session};

/// A question that was read.
struct Asked<'a> {
    name: &'a [u8],
    values: Values<'a>,
    /// What stands behind the key.
    last: Option<&'a [u8]>,
}

enum Values<'a> {
    One(&'a [u8]),
    Several(SmallVec<[Option<&'a str>; 4]>),
}

/// Why a question cannot be read.
type Mistake = String;

pub(super) async fn answer<S: Enter + Cells>(
    spec: &Spec,
    request: &Request<'_>,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    let asked = match Asked::read(spec, request) {
        Ok(Some(asked)) => asked,
        Ok(None) => return spec.wrong_number(reply),
        Err(mistake) => return reply.error(&mistake),
    };
    match decide(spec.verb, &asked, session.open(), reply).await {
        Ok(()) => {}
        Err(Failure::Asking(error)) => failed(reply, &error),
        Err(Failure::Mistake(mistake)) => reply.error(&mistake),
    }
}

enum Failure {
    Asking(DecisionError),
    Mistake(Mistake),
}

impl From<DecisionError> for Failure {
    fn from(error: DecisionError) -> Self {
        Self::Asking(error)
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

async fn decide<S: Enter + Cells>(
    verb: Verb,
    asked: &Asked<'_>,
    session: &Session<S>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let limit = session.named(asked.name).map_err(|error| asked.unknown(error))?;
    let key = asked.values.key();
    let holds = matches!(session.limit(&limit), Limit::Concurrency(_));
    let question = |cost| ChargeRequest { limit: &limit, key, cost, up_to: Some(Duration::ZERO) };
    match verb {
        Verb::Check if holds => {
            let name = String::from_utf8_lossy(asked.name);
            return Err(Failure::Mistake(format!(
                "ERR the limit '{name}' has slots to hold: TG.ENTER takes one, and TG.LEAVE gives it back"
            )));
        }
        Verb::Enter | Verb::Renew | Verb::Leave if !holds => {
            return Err(DecisionError::NothingToHold {
                name: String::from_utf8_lossy(asked.name).into_owned(),
            }
            .into());
        }
        Verb::Peek => {
            let status = session.peek(&[question(asked.units()?)]).await?;
            reply.array_of(5, told(status.statuses().first()));
        }
        Verb::Check | Verb::Enter => {
            let status = session.check(&[question(asked.units()?)]).await?;
            let told = told(status.statuses().first());
            if verb == Verb::Check {
                reply.array_of(5, told);
                return Ok(());
            }
            reply.array_of(6, told);
            match status.permit().filter(|_| !status.is_deny()) {
                Some(permit) => reply.bulk(permit.number().to_string().as_bytes()),
                None => reply.null(),
            }
        }
        Verb::Renew => {
            let held = session.renew(&[question(1)], asked.permit()?).await?;
            reply.integer(held.into());
        }
        Verb::Leave => {
            let units = session.leave(&[question(1)], asked.permit()?).await?;
            reply.integer(units.into());
        }
        Verb::Refund => {
            session.refund(&limit, key, asked.units()?).await?;
            reply.ok();
        }
        _ => {
            session.reset(&limit, key).await?;
            reply.ok();
        }
    }
    Ok(())
}

/// Limited, limit, remaining, retry after and reset after, in milliseconds.
fn told(status: Option<&Status>) -> [i64; 5] {
    // A set of one has a status; whoever does not say so has decided nothing.
    let Some(status) = status else { return [1, 0, 0, -1, -1] };
    let retry_after = match status.decision() {
        Decision::Deny(Retry::After(after)) => millis(after),
        Decision::Deny(Retry::WhenReleased) => -2,
        _ => -1,
    };
    [
        status.is_deny().into(),
        status.limit().into(),
        status.remaining().into(),
        retry_after,
        status.reset_after().map_or(-1, millis),
    ]
}

/// Whole milliseconds, rounded up.
pub(super) fn millis(duration: Duration) -> i64 {
    let part = u64::from(duration.subsec_nanos().div_ceil(1_000_000));
    let whole = duration.as_secs().saturating_mul(1_000).saturating_add(part);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

impl<'a> Asked<'a> {
    /// Reads `limit key [last]` or `limit KEYS n value.. [last]`; `None` where there are too many or too few.
    fn read(spec: &Spec, request: &Request<'a>) -> Result<Option<Self>, Mistake> {
        let name = request.get(1);
        let (needed, most) = match spec.verb {
            Verb::Renew | Verb::Leave => (1, 1),
            Verb::Reset => (0, 0),
            _ => (0, 1),
        };
        let plain = 3 + most;
        let (values, from) = if request.len() > plain && request.get(2).eq_ignore_ascii_case(b"KEYS") {
            let counted = request.get(3);
            let rest = request.len() - 4;
            let many =
                whole(counted).and_then(|many| usize::try_from(many).ok()).filter(|many| *many <= rest);
            let many = many.ok_or_else(|| {
                let counted = echoed(counted);
                format!("ERR KEYS needs how many values follow and then the values: '{counted}' with {rest} behind it")
            })?;
            let values: Result<_, _> =
                request.from(4).take(many).map(|it| std::str::from_utf8(it).map(Some)).collect();
            let values = values.map_err(|_| "ERR a value of a key of several is not UTF-8".to_owned())?;
            (Values::Several(values), 4 + many)
        } else {
            (Values::One(request.get(2)), 3)
        };
        let behind = request.len() - from;
        let fits = behind >= needed && behind <= most;
        Ok(fits.then(|| Self { name, values, last: request.from(from).next() }))
    }

    /// Why there is no limit of this name. Only then is it looked at whether the name is text at all.
    #[cold]
    fn unknown(&self, error: DecisionError) -> Failure {
        match std::str::from_utf8(self.name) {
            Ok(_) => error.into(),
            Err(_) => Failure::Mistake("ERR the limit's name is not UTF-8".to_owned()),
        }
    }

    /// The cost, or how many are given back; one if not said.
    fn units(&self) -> Result<u32, Mistake> {
        let Some(last) = self.last else { return Ok(1) };
        let units = whole(last).and_then(|units| u32::try_from(units).ok());
        units.ok_or_else(|| {
            format!("ERR '{}' is not a number of units: a whole number from 0 to {}", echoed(last), u32::MAX)
        })
    }

    fn permit(&self) -> Result<PermitId, Mistake> {
        let last = self.last.unwrap_or_default();
        let number = std::str::from_utf8(last).ok().and_then(|text| text.parse::<NonZeroU64>().ok());
        let number =
            number.ok_or_else(|| format!("ERR '{}' is not a permit that TG.ENTER gave", echoed(last)))?;
        Ok(PermitId::new(number))
    }
}

impl Values<'_> {
    fn key(&self) -> Key<'_> {
        match self {
            Self::One(bytes) => Key::Bytes(bytes),
            Self::Several(values) => Key::List(values),
        }
    }
}
