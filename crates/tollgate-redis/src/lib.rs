//! Limits shared by a fleet through Redis: the same decisions as in memory, made by one script on the server's clock.

mod lease;
mod link;
