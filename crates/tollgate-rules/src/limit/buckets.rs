//! The numbers of buckets and of Guava's two limiters: everything that runs at a rate.

use super::{ParsedLimit, accepted, charge, defaulted, duration, rate};
use crate::{decode::Cursor, schema};
use tollgate::{Delay, LeakyBucket, Refill, SmoothBursty, SmoothWarmingUp, TokenBucket};

pub(super) fn token_bucket(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::TOKEN_BUCKET)?;
    let pace = fields.required("rate").and_then(|pace| rate(&pace));
    let burst = fields.required("burst").and_then(|burst| burst.positive());
    let initial = defaulted(fields.optional("initial"), None, |initial| initial.count().map(Some));
    let refill = fields.defaulted("refill", |refill| {
        refill.choice(&[("continuous", Refill::Continuous), ("interval", Refill::Interval)])
    });
    fields.finish();

    let (burst, initial) = (burst?, initial?);
    if initial.is_some_and(|initial| initial > burst) {
        fields.mistake("initial", format!("must not be above the burst, {burst}"));
        return None;
    }
    let full = TokenBucket::new(pace?, burst);
    let made = full.and_then(|bucket| bucket.with_initial(initial.unwrap_or(burst)));
    Some(charge(accepted(&fields, made)?.with_refill(refill?)))
}

pub(super) fn leaky_bucket(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::LEAKY_BUCKET)?;
    let pace = fields.required("rate").and_then(|pace| rate(&pace));
    let capacity = fields.required("capacity").and_then(|capacity| capacity.positive());
    let delay = fields.defaulted("delay", |delay| {
        match delay.text("`none`, or how many pass without delay, such as 5")? {
            "none" => Some(Delay::None),
            _ => delay.positive().map(Delay::After),
        }
    });
    fields.finish();

    let (capacity, delay) = (capacity?, delay?);
    if let Delay::After(units) = delay
        && units > capacity
    {
        fields.mistake("delay", format!("must not be above the capacity, {capacity}"));
        return None;
    }
    accepted(&fields, LeakyBucket::new(pace?, capacity).and_then(|bucket| bucket.with_delay(delay)))
        .map(charge)
}

pub(super) fn smooth_bursty(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::SMOOTH_BURSTY)?;
    let pace = fields.required("rate").and_then(|pace| rate(&pace));
    let max_burst = fields.defaulted("max_burst", duration);
    let initial = fields.defaulted("initial", |it| it.count());
    fields.finish();

    let (max_burst, initial) = (max_burst?, initial?);
    let made =
        SmoothBursty::new(pace?).with_max_burst(max_burst).and_then(|limit| limit.with_initial(initial));
    accepted(&fields, made).map(charge)
}

pub(super) fn smooth_warming_up(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::SMOOTH_WARMING_UP)?;
    let pace = fields.required("rate").and_then(|pace| rate(&pace));
    let warmup = fields.required("warmup").and_then(|warmup| duration(&warmup));
    let cold_factor = fields.defaulted("cold_factor", |it| it.number());
    // Refused even where the rest is wrong too.
    let cold_factor = cold_factor.filter(|factor| {
        let good = factor.is_finite() && *factor >= 1.0;
        if !good {
            fields.mistake("cold_factor", "must be a finite number, 1 or more");
        }
        good
    });
    fields.finish();

    let cold_factor = cold_factor?;
    let made = SmoothWarmingUp::new(pace?, warmup?).and_then(|limit| limit.with_cold_factor(cold_factor));
    accepted(&fields, made).map(charge)
}
