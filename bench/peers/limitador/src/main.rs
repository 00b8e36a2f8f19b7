//! Limitador's library, asked and timed.
//!
//! ```text
//! limitador-peer KEYS CALLS
//! ```
//!
//! Every line of the input is a round of that many calls, over keys of which each has been used before; the answer is
//! how many nanoseconds a call took. The contexts that it is asked with are made beforehand.

use limitador::{
    RateLimiter,
    limit::{Context, Limit, Namespace},
};
use std::{collections::HashMap, env, io::stdin, time::Instant};

fn main() {
    let numbers: Vec<usize> = env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [keys, calls] = numbers[..] else { panic!("usage: limitador-peer KEYS CALLS") };
    let limiter = RateLimiter::new(2 * keys as u64);
    let by_user = "user".try_into().expect("an expression");
    limiter.add_limit(Limit::new("bench", 1_000_000_000, 3600, vec![], vec![by_user]));
    let namespace = Namespace::from("bench");
    let context = |key: usize| {
        Context::from(HashMap::from([("user".to_owned(), format!("user-{key:08}"))]))
    };
    let contexts: Vec<Context<'_>> = (0..keys).map(context).collect();
    let ask = |context: &Context<'_>| {
        let answer = limiter.check_rate_limited_and_update(&namespace, context, 1);
        let answer = answer.expect("an answer");
        assert!(!answer.limited && answer.counters.len() == 1, "the limit was charged, and allowed it");
    };
    contexts.iter().for_each(ask);
    // A stride that meets every key: a table is not gone through in the order in which it was filled.
    let mut at = 0;
    for _ in stdin().lines() {
        let begun = Instant::now();
        for _ in 0..calls {
            at = (at + 61_803) % keys;
            ask(&contexts[at]);
        }
        println!("{}", begun.elapsed().as_nanos() as f64 / calls as f64);
    }
}
