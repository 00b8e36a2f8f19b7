//! The ceiling: exact, whoever comes.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};
use tollgate_net::Ceiling;

fn ceiling(max: usize) -> Ceiling {
    Ceiling::new(NonZeroUsize::new(max).expect("not zero"))
}

#[test]
fn a_slot_that_is_dropped_is_free_again() {
    let ceiling = ceiling(2);
    let first = ceiling.enter().expect("room for two");
    let second = ceiling.enter().expect("room for two");
    assert!(ceiling.enter().is_none());
    assert_eq!((ceiling.inside(), ceiling.refused()), (2, 1));
    drop(first);
    let third = ceiling.enter().expect("one has left");
    drop((second, third));
    assert_eq!((ceiling.inside(), ceiling.refused()), (0, 1));
}

#[test]
fn a_lower_ceiling_lets_nobody_in_until_enough_have_left() {
    let ceiling = ceiling(3);
    let mut inside: Vec<_> = (0..3).map(|_| ceiling.enter().expect("room for three")).collect();
    ceiling.set_max(NonZeroUsize::MIN);
    assert_eq!((ceiling.max(), ceiling.inside()), (1, 3));
    while inside.pop().is_some() {
        assert_eq!(ceiling.enter().is_some(), inside.is_empty());
    }
}

#[test]
fn threads_never_go_above_it_and_leave_nothing_behind() {
    const MAX: usize = 3;
    let ceiling = ceiling(MAX);
    let inside = AtomicUsize::new(0);
    let entered = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    if let Some(slot) = ceiling.enter() {
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < MAX);
                        entered.fetch_add(1, Ordering::Relaxed);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                }
            });
        }
    });
    assert_eq!(ceiling.inside(), 0);
    assert_eq!(entered.into_inner() as u64 + ceiling.refused(), 80_000);
}
