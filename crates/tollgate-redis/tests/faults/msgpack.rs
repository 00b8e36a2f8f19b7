//! As much of MessagePack as it takes to damage a state with care.

/// The values of a text, each as its bytes; `None` where it is no row of values.
pub(crate) fn split(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = bytes.split_at_checked(length(bytes)?)?;
        values.push(value.to_vec());
        bytes = rest;
    }
    Some(values)
}

/// The bytes in a string.
pub(crate) fn payload(value: &[u8]) -> Option<&[u8]> {
    let head = match value.first()? {
        0xa0..=0xbf => 1,
        0xd9 | 0xc4 => 2,
        0xda | 0xc5 => 3,
        _ => return None,
    };
    value.get(head..)
}

/// A string of these bytes.
pub(crate) fn string(payload: &[u8]) -> Vec<u8> {
    let head = match payload.len() {
        length @ ..32 => vec![0xa0 | length as u8],
        length => [&[0xda][..], &(length as u16).to_be_bytes()].concat(),
    };
    [&head[..], payload].concat()
}

pub(crate) fn integer(number: i64) -> Vec<u8> {
    [&[0xd3][..], &number.to_be_bytes()].concat()
}

pub(crate) fn double(number: f64) -> Vec<u8> {
    [&[0xcb][..], &number.to_be_bytes()].concat()
}

pub(crate) fn array(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0x90 | values.len() as u8][..], &values.concat()].concat()
}

/// How many bytes the first value takes.
fn length(bytes: &[u8]) -> Option<usize> {
    let sized = |width: usize| {
        let digits = bytes.get(1..=width)?;
        let size = digits.iter().fold(0_usize, |size, digit| size << 8 | usize::from(*digit));
        Some(1 + width + size)
    };
    let several =
        |head: usize, count: usize| (0..count).try_fold(head, |at, _| Some(at + length(bytes.get(at..)?)?));
    match *bytes.first()? {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Some(1),
        head @ 0x80..=0x8f => several(1, 2 * usize::from(head & 15)),
        head @ 0x90..=0x9f => several(1, usize::from(head & 15)),
        head @ 0xa0..=0xbf => Some(1 + usize::from(head & 31)),
        0xcc | 0xd0 => Some(2),
        0xcd | 0xd1 => Some(3),
        0xce | 0xd2 | 0xca => Some(5),
        0xcf | 0xd3 | 0xcb => Some(9),
        0xd9 | 0xc4 => sized(1),
        0xda | 0xc5 => sized(2),
        _ => None,
    }
}
