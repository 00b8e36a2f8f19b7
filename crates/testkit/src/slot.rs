//! In which of a cluster's slots a key lies.

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: the CRC of the key, or of what is between the first `{` and the next `}` if that is not empty.
#[must_use]
pub fn slot_of(key: impl AsRef<[u8]>) -> u16 {
    let key = key.as_ref();
    crc16(tag_of(key).unwrap_or(key)) % SLOTS
}

fn tag_of(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let tag = &key[open + 1..];
    let close = tag.iter().position(|byte| *byte == b'}')?;
    (close > 0).then(|| &tag[..close])
}

/// CRC-16 as in XMODEM: polynomial 0x1021, from zero, no reflection.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn a_tag_decides_unless_it_is_empty() {
        assert_eq!(slot_of("{user}:a"), slot_of("user"));
        assert_eq!(slot_of("a{user}b{other}"), slot_of("user"));
        assert_eq!(slot_of("{}user"), crc16(b"{}user") % SLOTS);
        assert_eq!(slot_of("{user"), crc16(b"{user") % SLOTS);
    }
}
