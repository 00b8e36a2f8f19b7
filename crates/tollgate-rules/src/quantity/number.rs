//! Decimals, exactly: digits over a power of ten.

use super::Problem;

/// `digits / scale`, the scale being a power of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    scale: u128,
}

impl Decimal {
    /// The number that `text` begins with, and what follows it.
    pub(super) fn leading(text: &str) -> Result<(Self, &str), Problem> {
        let (whole, rest) = split_digits(text);
        if whole.is_empty() {
            return Err(no_number(text));
        }
        let (fraction, rest) = match rest.strip_prefix('.').map(split_digits) {
            Some(("", _)) => return Err(Problem::NoNumber),
            Some(parts) => parts,
            None => ("", rest),
        };
        let fraction = fraction.trim_end_matches('0');
        let mut decimal = Self { digits: 0, scale: 1 };
        for digit in whole.bytes() {
            decimal.push(digit).ok_or(Problem::TooLarge { max: "18446744073709551615" })?;
        }
        for digit in fraction.bytes() {
            decimal.scale = decimal.scale.checked_mul(10).ok_or(TOO_MANY_DIGITS)?;
            decimal.push(digit).ok_or(TOO_MANY_DIGITS)?;
        }
        Ok((decimal, rest))
    }

    fn push(&mut self, digit: u8) -> Option<()> {
        self.digits = self.digits.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        Some(())
    }

    pub(super) const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// `self * factor` as a fraction in lowest terms; `None` where it cannot be held.
    pub(super) fn times(self, factor: u64) -> Option<(u128, u128)> {
        let numerator = self.digits.checked_mul(factor.into())?;
        let divisor = gcd(numerator, self.scale);
        Some((numerator / divisor, self.scale / divisor))
    }
}

const TOO_MANY_DIGITS: Problem = Problem::TooFine { counted_in: "billionths" };

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

/// What stands where a number should.
fn no_number(text: &str) -> Problem {
    let unsigned = text.trim_start_matches(['+', '-', '.']);
    let word: String = unsigned.chars().take_while(|letter| letter.is_alphabetic()).collect();
    match word.to_ascii_lowercase().as_str() {
        "nan" | "inf" | "infinity" => Problem::NotFinite,
        _ if text.starts_with('-') && unsigned.starts_with(|first: char| first.is_ascii_digit()) => {
            Problem::Negative
        }
        _ => Problem::NoNumber,
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
