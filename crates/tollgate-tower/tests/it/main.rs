//! The layers as their users see them, in paused time.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod any_order;
mod calls;
mod giving_up;
mod keys;
mod served;
mod sharing;
mod slots;
mod stage;
mod told;
mod waiting;
