//! Which of a cluster's 16384 slots a key is in: CRC-16 (XMODEM) of the key, or of its tag in `{braces}`.

pub(super) const SLOTS: u16 = 16384;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

pub(super) fn slot_of(key: &[u8]) -> u16 {
    tag_of(key).iter().fold(0, |crc: u16, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
        % SLOTS
}

/// What is between the first `{` and the next `}`, if that is anything; else the whole key.
fn tag_of(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &inside[..close],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_slots() {
        assert_eq!(slot_of(b"123456789"), 0x31c3 % SLOTS);
        for (key, slot) in
            [("", 0), ("foo", 12182), ("bar", 5061), ("{foo}.x", 12182), ("a{foo}{bar}", 12182)]
        {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn braces_that_make_no_tag() {
        for key in ["{}foo", "foo{", "foo}", "}{", "{foo"] {
            assert_eq!(tag_of(key.as_bytes()), key.as_bytes(), "{key}");
        }
        assert_eq!(tag_of(b"foo{{bar}}zap"), b"{bar");
    }

    #[test]
    fn the_tests_own_reckoning_agrees() {
        for i in 0..10_000_u32 {
            let key = format!("{i}{{{}}}", i.wrapping_mul(2_654_435_761));
            assert_eq!(slot_of(key.as_bytes()), testkit::slot_of(&key));
        }
    }
}
