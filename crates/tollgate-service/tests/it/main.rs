//! The doors, from outside.

mod desk;
mod json;
mod resp;
mod rls;
mod same;
