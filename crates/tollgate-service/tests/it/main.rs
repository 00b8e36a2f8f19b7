//! The doors, from outside.

mod desk;
mod json;
