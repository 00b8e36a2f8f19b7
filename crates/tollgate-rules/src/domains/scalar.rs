//! Scalars without quotes, as the YAML reader of envoyproxy/ratelimit (go-yaml, YAML 1.1) resolves them.
//!
//! That reader takes `010` for 8 where most readers of a file see 10, and it knows hexadecimal, octal and binary numbers. A
//! number that is not written in plain decimal is refused with a message that says what to write, because either reading
//! would surprise somebody. `_` between digits is accepted: every reader agrees on it.

/// `true` or `false`, in the words that YAML 1.1 has for them.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// Decimal digits with `_` between them removed; `None` where it does not begin with a digit.
pub(super) fn digits(text: &str) -> Option<String> {
    text.starts_with(|first: char| first.is_ascii_digit()).then(|| text.replace('_', ""))
}

/// Why a number is refused that is not written in plain decimal, and what to write; `None` where it is no such number.
pub(super) fn refusal(text: &str) -> Option<String> {
    let unsigned = text.trim_start_matches(['-', '+']);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let number = digits(unsigned)?.to_ascii_lowercase();
    let parse = |digits: &str, base| {
        // `from_str_radix` takes a sign, which no prefix is followed by.
        let is_number = digits.starts_with(|first: char| first.is_ascii_alphanumeric());
        u64::from_str_radix(digits, base).ok().filter(|_| is_number)
    };
    for (prefix, base, name) in [("0x", 16, "a hexadecimal"), ("0o", 8, "an octal"), ("0b", 2, "a binary")] {
        if let Some(digits) = number.strip_prefix(prefix) {
            let value = parse(digits, base)?;
            return Some(format!("{text} is {name} number; write {sign}{value}"));
        }
    }
    let rest = number.strip_prefix('0').filter(|rest| !rest.is_empty())?;
    let decimal = parse(rest, 10)?;
    Some(match parse(rest, 8) {
        None => format!("{text} has a leading zero and is no octal number; write {sign}{decimal}"),
        Some(octal) => {
            let or = if octal == decimal { String::new() } else { format!(" or {sign}{decimal}") };
            format!("{text} has a leading zero, which YAML 1.1 reads as octal; write {sign}{octal}{or}")
        }
    })
}
