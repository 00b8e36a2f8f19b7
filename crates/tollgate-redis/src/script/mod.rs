//! The one script that decides: the steps of `crates/tollgate/src/step` restated, a file each, and the questions around them.
//!
//! The parts are one text to Redis. The short ways come first, the shortest in front: `one.lua` answers plain checks on one
//! bucket that are all equal; for others `plain.lua` reads the buckets, `each.lua`, `runs.lua` or `sets.lua` decides, `keep.lua` writes and answers, and
//! nothing after that is run. They have no functions, and a step's are made when a call first needs that kind of limit, since
//! whatever stands at the top is made anew for every call.
//!
//! **Exactness.** Lua counts in doubles, which hold whole numbers up to 2^53. Redis reports whole microseconds, and on whole
//! microseconds the credits of a bucket have smaller lowest terms than on nanoseconds. A level is kept as whole units and
//! the credits of one more, relative to the time it was written, where the step in memory has a due point of 127 bits.
//! Products above 2^53 are not formed but divided as they grow (`muldiv` in `arithmetic.lua`). So the script is exact where
//! the step is. A limit that this cannot hold (a window of half a microsecond, an amount above 2^52) is refused when it is
//! added. The pure steps are the oracle: `tests/it/conformance.rs` plays random limits, schedules and sets to a memory store
//! and to Redis, and every response must agree to the last hint.
//!
//! **State.** One string a key, of 60 to 80 bytes for most limits; `keys.lua` has the format. Every key expires one second
//! after it is as if never used; a plain bucket's key expires up to a quarter of that time and four seconds later still, so
//! that most charges find a key that lives long enough and leave its expiry alone. Logs and holders of permits are packed
//! records inside the string, which a charge copies: a log of 1,000 entries costs about 10 us, one of 100,000 half a
//! millisecond.
//!
//! **Numbers that change.** A state carries the numbers and the generation it was written with. A node with a newer
//! generation converts the state with its first charge; a node with an older one obeys what is stored. Where the generations
//! are equal and the numbers are not, the node that charges converts. A program chooses generations; rules have none, so
//! theirs is the time at which a node put the numbers in force. A count per process would begin again with every start, and
//! keys in steady use, which never expire, would keep the numbers of an earlier run.

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
