//! Side by side with the peers.
fn main() {}
