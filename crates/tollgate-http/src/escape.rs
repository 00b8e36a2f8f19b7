//! Text and numbers as the wires want them: structured fields, JSON, gRPC messages.
//!
//! A name comes from whoever wrote the rules, and may hold anything; what leaves here is always well formed.

/// The largest number of a structured field: 15 digits.
pub(crate) const MOST: u64 = 999_999_999_999_999;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A structured field's String. It holds printable ASCII only; every other byte of a name is shown as `%` and its two digits.
pub(crate) fn quoted(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => into.extend([b'\\', byte]),
            b' '..=b'~' => into.push(byte),
            other => percent(into, other),
        }
    }
    into.push(b'"');
}

/// What gRPC takes for a message in a header: printable ASCII without `%`, and the rest by its digits.
pub(crate) fn grpc_message(text: &str) -> Vec<u8> {
    let mut into = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => percent(&mut into, byte),
            b' '..=b'~' => into.push(byte),
            other => percent(&mut into, other),
        }
    }
    into
}

fn percent(into: &mut Vec<u8>, byte: u8) {
    into.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// A JSON string.
pub(crate) fn json(into: &mut String, text: &str) {
    into.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => into.extend(['\\', character]),
            '\u{0}'..='\u{1f}' => {
                let code = character as usize;
                into.push_str("\\u00");
                into.extend([char::from(HEX[code >> 4]), char::from(HEX[code & 15])]);
            }
            other => into.push(other),
        }
    }
    into.push('"');
}

/// How many digits a number has.
pub(crate) const fn digits(number: u64) -> usize {
    match number.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// Appends a number's digits.
pub(crate) fn decimal(into: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    into.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_everywhere() {
        let tens = (0..20).map(|power| 10_u64.pow(power));
        for number in tens.flat_map(|ten| [ten - 1, ten, ten + 1]).chain([u64::MAX]) {
            let mut written = Vec::new();
            decimal(&mut written, number);
            assert_eq!(written, number.to_string().as_bytes());
            assert_eq!(written.len(), digits(number));
        }
    }

    #[test]
    fn what_no_field_can_hold_is_shown_by_its_digits() {
        let mut field = Vec::new();
        quoted(&mut field, "a \"b\\\" é\n");
        assert_eq!(field, br#""a \"b\\\" %C3%A9%0A""#);
        assert_eq!(grpc_message("100 % é"), b"100 %25 %C3%A9");
    }
}
