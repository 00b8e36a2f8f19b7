//! Many rows in few statements: over a network every statement is a journey there and back.

/// Rows in a statement: each has a handful of parameters, of which databases take some thousands.
const ROWS: usize = 250;
/// Bytes of text in a statement, but for a row that has more by itself: servers bound what they take at once.
const BYTES: usize = 1 << 20;

/// Rows, in the batches that a statement takes.
pub(super) fn batches<T>(rows: &[T], bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut batches, mut rest) = (Vec::new(), rows);
    while !rest.is_empty() {
        let mut sum = 0_usize;
        let fits = rest.iter().take(ROWS).take_while(|row| {
            sum = sum.saturating_add(bytes(row));
            sum <= BYTES
        });
        let (batch, after) = rest.split_at(fits.count().max(1));
        batches.push(batch);
        rest = after;
    }
    batches
}

/// So many times the same, with commas.
pub(super) fn times(text: &str, count: usize) -> String {
    vec![text; count].join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_leave_nothing_out() {
        let lengths =
            |rows: &[usize]| batches(rows, |row| *row).iter().map(|it| it.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [0; 0]);
        assert_eq!(lengths(&[1; 600]), [250, 250, 100]);
        assert_eq!(lengths(&[BYTES / 2, BYTES / 2, 1, 2 * BYTES, 3]), [2, 1, 1, 1]);
        assert_eq!(times("(?)", 3), "(?), (?), (?)");
    }
}
