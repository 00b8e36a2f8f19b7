//! Some hundred thousand random operations of all kinds: futures are dropped in every state (unpolled, waiting, woken but not
//! polled, released but not polled), mixed with every operation on the limits.

use super::{
    harness::{ClockSteps, agree},
    history::{Numbers, Operations, buckets, even_buckets, logs, slots, windows},
    library::Api,
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

const OPS: usize = 1_000;
/// Per type, kind of clock and kind of limit.
const HISTORIES: usize = 8;

const EVERYTHING: Operations = Operations {
    longest: 4_000,
    deadlines: true,
    drops: true,
    unpolled: true,
    checks: true,
    peeks: true,
    changes: true,
    acts: true,
    leaves: false,
};

/// Without resets and grants, whose effect on held permits is tested elsewhere.
const SLOTS: Operations = Operations { unpolled: false, acts: false, leaves: true, ..EVERYTHING };

/// Deadlines of sets have their own test.
const SETS: Operations = Operations { deadlines: false, ..EVERYTHING };

fn random() -> TestRunner {
    TestRunner::new_with_rng(ProptestConfig::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn all_agree(mix: Operations, apis: &[Api], limits: impl Strategy<Value = Vec<Numbers>>) {
    let mut random = random();
    let histories = mix.histories_of(OPS..OPS + 1);
    for api in apis {
        for steps in [ClockSteps::Fine, ClockSteps::Coarse, ClockSteps::CoarseReversed] {
            for number in 0..HISTORIES {
                let limits = limits.new_tree(&mut random).unwrap().current();
                let history = histories.new_tree(&mut random).unwrap().current();
                if let Err(error) = agree(*api, &limits, steps, history) {
                    panic!("history {number}, {api:?}, {steps:?}, {limits:?}: {error}");
                }
            }
        }
    }
}

const ALL: [Api; 3] = [Api::Limiter, Api::Keyed, Api::Store];

#[test]
fn buckets_match_the_model_over_long_histories() {
    all_agree(EVERYTHING, &ALL, buckets(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn windows_match_the_model_over_long_histories() {
    all_agree(EVERYTHING, &ALL, windows(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn logs_match_the_model_over_long_histories() {
    all_agree(EVERYTHING, &ALL, logs(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn slots_match_the_model_over_long_histories() {
    let mut random = random();
    let histories = SLOTS.histories_of(OPS..OPS + 1);
    let limits = slots(5..8, 1_000);
    for api in ALL {
        for number in 0..3 * HISTORIES {
            let limit = limits.new_tree(&mut random).unwrap().current();
            let history = histories.new_tree(&mut random).unwrap().current();
            if let Err(error) = agree(api, &[limit], ClockSteps::Fine, history) {
                panic!("history {number}, {api:?}, {limit:?}: {error}");
            }
        }
    }
}

#[test]
fn sets_match_the_model_over_long_histories() {
    let limits = (even_buckets(5..12), logs(5..12), windows(5..12));
    all_agree(SETS, &[Api::Store], limits.prop_map(|(bucket, log, window)| vec![bucket, log, window]));
    let limits = (even_buckets(5..12), slots(5..12, 1_000));
    let mix = Operations { deadlines: false, ..SLOTS };
    all_agree(mix, &[Api::Store], limits.prop_map(|(bucket, slots)| vec![bucket, slots]));
}
