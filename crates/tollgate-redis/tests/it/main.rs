//! The store from outside, against real servers.
