//! The known name nearest to a mistyped one.
//!
//! A suggestion that is far off is worse than none, so a name is only offered where about a third of it, or less, has to
//! change. Letter case is a small slip: it counts for nothing.

/// The name among `known` that `typed` was probably meant to be, if any is close.
///
/// ```
/// use tollgate_rules::nearest;
///
/// assert_eq!(nearest("brust", ["rate", "burst"]), Some("burst"));
/// assert_eq!(nearest("colour", ["rate", "burst"]), None);
/// ```
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody means a name with something this long, and the distance takes the product of the lengths.
    const LONGEST: usize = 64;
    if typed.is_empty() || typed.len() > LONGEST {
        return None;
    }
    let typed: Vec<char> = typed.to_lowercase().chars().collect();
    known
        .into_iter()
        .map(|name| (distance(&typed, &name.to_lowercase().chars().collect::<Vec<_>>()), name))
        .filter(|(distance, name)| *distance <= name.chars().count().max(typed.len()).div_ceil(3))
        .filter(|(distance, name)| *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be added, dropped, replaced or swapped with their neighbour.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = Vec::with_capacity(to.len() + 1);
        line.push(row + 1);
        for (column, other) in to.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != other);
            let mut least = replaced.min(above[column + 1] + 1).min(line[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other;
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] =
        ["token_bucket", "leaky_bucket", "sliding_log", "sliding_window", "rate", "burst"];

    #[test]
    fn slips_of_the_finger_are_understood() {
        for (typed, meant) in [
            ("brust", "burst"),
            ("Burst", "burst"),
            ("rates", "rate"),
            ("tokenbucket", "token_bucket"),
            ("slidingwindow", "sliding_window"),
            ("sliding-log", "sliding_log"),
        ] {
            assert_eq!(nearest(typed, NAMES), Some(meant), "{typed}");
        }
    }

    #[test]
    fn far_off_names_are_not_offered() {
        for typed in ["", "x", "colour", "queue", "leak", &"burst".repeat(40)] {
            assert_eq!(nearest(typed, NAMES), None, "{typed}");
        }
    }
}
