//! The doors, from outside.

mod json;
mod resp;
mod rls;
mod same;
