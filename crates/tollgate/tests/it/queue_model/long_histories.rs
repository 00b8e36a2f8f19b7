//! Everything at once, by the hundred thousand: futures are dropped unpolled, waiting, woken and not polled, released and not
//! told, in any order with all that is done to the limits meanwhile.

use super::{
    drive::{Steps, agree},
    history::{Mix, Numbers, buckets, even_buckets, logs, slots, windows},
    library::Way,
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

const OPS: usize = 1_000;
/// For each way, each kind of clock and each kind of limit.
const HISTORIES: usize = 8;

const EVERYTHING: Mix = Mix {
    longest: 4_000,
    deadlines: true,
    drops: true,
    forgotten: true,
    checks: true,
    peeks: true,
    changes: true,
    acts: true,
    leaves: false,
};

/// Of slots, what a reset or a grant means for those who hold them is another matter.
const SLOTS: Mix = Mix { forgotten: false, acts: false, leaves: true, ..EVERYTHING };

/// Sets are not judged on arrival where one of their limits has slots.
const SETS: Mix = Mix { deadlines: false, ..EVERYTHING };

fn random() -> TestRunner {
    TestRunner::new_with_rng(ProptestConfig::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn all_agree(mix: Mix, ways: &[Way], limits: impl Strategy<Value = Vec<Numbers>>) {
    let mut random = random();
    let histories = mix.histories_of(OPS..OPS + 1);
    for way in ways {
        for steps in [Steps::Fine, Steps::Coarse, Steps::Reversed] {
            for number in 0..HISTORIES {
                let limits = limits.new_tree(&mut random).unwrap().current();
                let history = histories.new_tree(&mut random).unwrap().current();
                if let Err(error) = agree(*way, &limits, steps, history) {
                    panic!("history {number}, {way:?}, {steps:?}, {limits:?}: {error}");
                }
            }
        }
    }
}

const ALL: [Way; 3] = [Way::Limiter, Way::Keyed, Way::Store];

#[test]
fn buckets_stand_as_the_model_says_after_anything() {
    all_agree(EVERYTHING, &ALL, buckets(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn windows_stand_as_the_model_says_after_anything() {
    all_agree(EVERYTHING, &ALL, windows(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn logs_stand_as_the_model_says_after_anything() {
    all_agree(EVERYTHING, &ALL, logs(5..12).prop_map(|limit| vec![limit]));
}

#[test]
fn slots_stand_as_the_model_says_after_anything() {
    let mut random = random();
    let histories = SLOTS.histories_of(OPS..OPS + 1);
    let limits = slots(5..8, 1_000);
    for way in ALL {
        for number in 0..3 * HISTORIES {
            let limit = limits.new_tree(&mut random).unwrap().current();
            let history = histories.new_tree(&mut random).unwrap().current();
            if let Err(error) = agree(way, &[limit], Steps::Fine, history) {
                panic!("history {number}, {way:?}, {limit:?}: {error}");
            }
        }
    }
}

#[test]
fn sets_stand_as_the_model_says_after_anything() {
    let limits = (even_buckets(5..12), logs(5..12), windows(5..12));
    all_agree(SETS, &[Way::Store], limits.prop_map(|(bucket, log, window)| vec![bucket, log, window]));
    let limits = (even_buckets(5..12), slots(5..12, 1_000));
    let mix = Mix { deadlines: false, ..SLOTS };
    all_agree(mix, &[Way::Store], limits.prop_map(|(bucket, slots)| vec![bucket, slots]));
}
