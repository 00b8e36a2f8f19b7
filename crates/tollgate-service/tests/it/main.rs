//! The doors, from outside.

mod desk;
