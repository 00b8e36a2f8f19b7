//! Cells in Redis: buckets whose numbers come with every question, each a key of its own beside those of limits.
//!
//! The script adds and compares; what a unit costs is worked out before, and what is told afterwards, on the node.

use crate::{
    asking::{is_outage, nonsense},
    failure::COME_BACK,
    names,
    question::number,
    store::RedisStore,
};
use redis::Value;
use std::time::Duration;
use tollgate::{
    CellPassed, Cells, DecidedBy, Key, OnFailure, Owing, StoreError, Throttle, ThrottleNumbers, Throttled,
};

/// What cells are called where limits have their names: none can be called so, since the star would be escaped.
const NAME: &str = "*cell";

/// How a cell stood before it was asked.
struct Stood {
    passed: CellPassed,
    micros: u64,
    part: u64,
    now: u64,
}

impl RedisStore {
    async fn ask_cell(&self, key: Key<'_>, numbers: &ThrottleNumbers) -> Result<Stood, StoreError> {
        let name = names::bucket(&self.shared.settings.prefix, &key, NAME);
        let gatherer = &self.shared.gatherer;
        let ThrottleNumbers { of, tolerance, price, quantity, .. } = numbers;
        let now = gatherer.passed_in().map_or_else(|| "-".to_owned(), |now| now.to_string());
        let (most, most_part, costs, costs_part) = (tolerance.0, tolerance.1, price.0, price.1);
        let sign = quantity.signum();
        let argument = format!("{now} {most} {most_part} {costs} {costs_part} {of} {sign}");
        let group = gatherer.link().group_of(&name);
        let keys = [&name];
        let told =
            self.call(group, &name, gatherer.link().call_cell(group, &keys, argument.as_bytes())).await?;
        let text = |bytes: &[u8]| match bytes {
            b"damaged" => StoreError::Damaged { key: String::from_utf8_lossy(&name).into_owned() },
            b"new" => StoreError::TooNew { key: String::from_utf8_lossy(&name).into_owned() },
            _ => nonsense(),
        };
        match told {
            Value::Array(values) => stood(values).ok_or_else(|| {
                gatherer.link().distrust(group);
                nonsense()
            }),
            Value::BulkString(bytes) => Err(text(&bytes)),
            _ => Err(nonsense()),
        }
    }

    async fn throttle_in_redis(&self, key: Key<'_>, asked: &Throttle) -> Result<Throttled, StoreError> {
        let numbers = asked.numbers();
        let stood = self.ask_cell(key, &numbers).await?;
        let passed = if numbers.quantity == 0 { CellPassed::No } else { stood.passed };
        Ok(asked.told((stood.micros, stood.part), passed))
    }
}

impl Cells for RedisStore {
    async fn throttle(&self, key: Key<'_>, asked: &Throttle) -> Result<Throttled, StoreError> {
        let error = match self.throttle_in_redis(key, asked).await {
            Ok(told) => return Ok(told),
            Err(error) if is_outage(&error) => error,
            Err(error) => return Err(error),
        };
        let Some(policy) = self.shared.settings.on_failure else { return Err(error) };
        self.shared.counts.without_redis();
        if policy != OnFailure::Local {
            return Ok(asked.by_policy(policy, COME_BACK));
        }
        let local = &self.shared.local;
        let told = local.store.throttle(key, &asked.share(local.nodes()));
        Ok(told.said_by(DecidedBy::Failure(policy)))
    }

    async fn forget(&self, key: Key<'_>) -> Result<bool, StoreError> {
        let was_owed = self.shared.local.store.forget(key);
        let name = names::bucket(&self.shared.settings.prefix, &key, NAME);
        let owing = self.owing(key).await?;
        let link = self.shared.gatherer.link();
        let group = link.group_of(&name);
        let delete = redis::cmd("DEL").arg(&*name).take();
        self.call(group, &name, link.plain(group, delete)).await?;
        Ok(owing.is_some() || was_owed)
    }

    async fn owing(&self, key: Key<'_>) -> Result<Option<Owing>, StoreError> {
        // Numbers with one part to a microsecond: what is owed comes back rounded up.
        let numbers = Throttle::per(1, Duration::from_micros(1)).map(|it| it.quantity(0).numbers());
        let stood = self.ask_cell(key, &numbers.map_err(|_| nonsense())?).await?;
        let owing = Owing {
            lasting: Duration::from_micros(stood.micros),
            until: stood.now.saturating_add(stood.micros).saturating_mul(1_000),
        };
        Ok((stood.micros > 0).then_some(owing))
    }
}

fn stood(values: Vec<Value>) -> Option<Stood> {
    let mut values = values.into_iter();
    let mut next = || number(values.next()).ok();
    let passed = if next()? == 1 { CellPassed::Yes } else { CellPassed::No };
    Some(Stood { passed, micros: next()?, part: next()?, now: next()? })
}
