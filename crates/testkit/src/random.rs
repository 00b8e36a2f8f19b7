//! Numbers that look random and are the same every time.

/// Numbers drawn one after the other from a seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// From this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// One of the first `many` numbers; zero of none.
    pub fn below(&mut self, many: usize) -> usize {
        (self.draw() % many.max(1) as u64) as usize
    }

    /// From 0 to less than 1.
    pub fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
