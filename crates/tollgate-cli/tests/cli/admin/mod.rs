//! The admin API of the running program.

mod document;
mod doing;
mod fuzz;
mod hostile;
mod live;
mod stage;
mod users;
