//! The one script that decides: the steps of `crates/tollgate/src/step` restated, a file each, and the questions around them.
//!
//! The parts are one text to Redis. The short ways come first, the shortest in front: `one.lua` answers plain checks on one
//! bucket that are all equal; for others `plain.lua` reads the buckets, `each.lua`, `runs.lua` or `sets.lua` decides, `keep.lua` writes and answers, and
//! nothing after that is run. They have no functions, and a step's are made when a call first needs that kind of limit, since
//! whatever stands at the top is made anew for every call.

/// What Redis runs.
pub(crate) const SCRIPT: &str = concat!(
    include_str!("one.lua"),
    include_str!("plain.lua"),
    include_str!("each.lua"),
    include_str!("runs.lua"),
    include_str!("sets.lua"),
    include_str!("keep.lua"),
    include_str!("arithmetic.lua"),
    include_str!("bucket.lua"),
    include_str!("interval.lua"),
    include_str!("smooth.lua"),
    include_str!("fixed_window.lua"),
    include_str!("sliding_counter.lua"),
    include_str!("events.lua"),
    include_str!("concurrency.lua"),
    include_str!("keys.lua"),
    include_str!("decide.lua"),
);

/// What Redis runs for a cell.
pub(crate) const CELL: &str = include_str!("cell.lua");
