//! Cells: buckets whose numbers come with every question, as those of redis-cell's `CL.THROTTLE` do.
//!
//! A cell keeps only until when it owes; how fast that is paid off, and how much may be owed, is said anew each time and may
//! change from one question to the next. So a cell is not one of the named limits: it has no limit to be named by.

mod seam;
mod step;
mod table;
mod throttle;

pub(crate) use table::CellTable;

pub use seam::{Cells, Owing};
pub use throttle::{Passed as CellPassed, Throttle, ThrottleError, ThrottleNumbers, Throttled};
