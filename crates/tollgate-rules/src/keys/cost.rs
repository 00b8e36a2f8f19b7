//! How many units a request costs.

use crate::{model::Cost, reading::header_lines};
use http::{HeaderMap, HeaderName, header::CONTENT_LENGTH};

/// How many units a request costs, as far as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// So many.
    Known(u32),
    /// As many as its body has bytes, and it does not announce how many: either there is no body, which costs nothing, or
    /// nobody knows before it ends. Whoever holds the body knows which.
    Unannounced,
}

impl Units {
    /// The units, or this many where they are not announced.
    #[must_use]
    pub fn known_or(self, unannounced: u32) -> u32 {
        match self {
            Self::Known(units) => units,
            Self::Unannounced => unannounced,
        }
    }
}

/// What a cost comes to for a request with these headers.
pub(crate) fn units(cost: &Cost, headers: &HeaderMap) -> Units {
    match cost {
        Cost::Units(units) => Units::Known(*units),
        Cost::ContentLength => match largest(headers, &CONTENT_LENGTH) {
            Some(length) => Units::Known(length),
            None => Units::Unannounced,
        },
        Cost::Header(header) => {
            let told = largest(headers, &header.header);
            Units::Known(told.map_or(header.default, |told| told.clamp(header.min, header.max)))
        }
    }
}

/// The largest number that a header tells: who tells several pays for the most.
fn largest(headers: &HeaderMap, name: &HeaderName) -> Option<u32> {
    header_lines(headers, name).filter_map(|line| number(&line)).max()
}

/// A whole number in digits; one that is too large for units is the largest there is.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::HeaderCost;
    use http::HeaderValue;

    fn cost(cost: &Cost, name: &'static str, value: &'static str) -> Units {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        units(cost, &headers)
    }

    #[test]
    fn a_body_costs_what_it_announces() {
        let told = |value| cost(&Cost::ContentLength, "content-length", value);
        assert_eq!(told("1500"), Units::Known(1500));
        assert_eq!(told("0"), Units::Known(0));
        assert_eq!(told("99999999999999999999"), Units::Known(u32::MAX));
        assert_eq!(told("-1"), Units::Unannounced);
        assert_eq!(units(&Cost::ContentLength, &HeaderMap::new()), Units::Unannounced);
        assert_eq!(Units::Unannounced.known_or(7), 7);
        assert_eq!(told("1500").known_or(7), 1500);
    }

    #[test]
    fn a_header_tells_the_cost_within_bounds() {
        let header = HeaderCost { header: HeaderName::from_static("x-cost"), default: 3, min: 2, max: 100 };
        let by_header = Cost::Header(header.clone());
        let told = |value| cost(&by_header, "x-cost", value);
        assert_eq!(told("7"), Units::Known(7));
        assert_eq!(told(" 7 "), Units::Known(7));
        assert_eq!(told("101"), Units::Known(100));
        assert_eq!(told("99999999999999999999"), Units::Known(100));
        for nonsense in ["", "x", "-1", "+1", "1.5", "1e3"] {
            assert_eq!(told(nonsense), Units::Known(3), "{nonsense}");
        }
        assert_eq!(units(&by_header, &HeaderMap::new()), Units::Known(3));
        // Nobody passes for less than the rule says.
        assert_eq!((told("0"), told("1"), told("2")), (Units::Known(2), Units::Known(2), Units::Known(2)));
        let free = Cost::Header(HeaderCost { min: 0, ..header });
        assert_eq!(cost(&free, "x-cost", "0"), Units::Known(0));
        assert_eq!(units(&Cost::Units(3), &HeaderMap::new()), Units::Known(3));
    }
}
