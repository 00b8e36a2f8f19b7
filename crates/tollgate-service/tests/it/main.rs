//! The doors, from outside.

mod desk;
mod resp;
mod rls;
