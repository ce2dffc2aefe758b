//! "Did you mean": the nearest of the words that would have been right.

/// Longer words than this are not compared; nobody misspells one by two letters.
const WORD_CHARS_MAX: usize = 64;

/// The candidate that `word` was probably meant to be, if one is near enough: at most a third
/// of its letters differ (upper and lower case do not); two swapped neighbours count as one.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_ascii_lowercase().replace('-', "_");
    if word.chars().count() > WORD_CHARS_MAX {
        return None;
    }
    // Of two letters, one that differs is half of the word: "n4" does not mean "n1".
    let far = word.chars().count() / 3;
    let near = |candidate: &'a str| {
        let plain = candidate.to_ascii_lowercase().replace('-', "_");
        // A beginning of three letters or more is as good as a typing error.
        let begins = word.len() >= 3 && (plain.starts_with(&word) || word.starts_with(&plain));
        let distance = if begins { 1 } else { distance(&word, &plain) };
        (distance <= far).then_some((distance, candidate))
    };
    // min_by_key keeps the first of equals, so the answer does not depend on anything but order.
    candidates
        .into_iter()
        .filter_map(near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut current = vec![row];
        for column in 1..=right.len() {
            let replaced = usize::from(left[row - 1] != right[column - 1]);
            let mut best =
                (last[column - 1] + replaced).min(last[column] + 1).min(current[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                best = best.min(before_last[column - 2] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let keys = ["token_loss_ms", "encrypt", "multicast", "style", "listen"];
        assert_eq!(nearest("token_los_ms", keys), Some("token_loss_ms"));
        assert_eq!(nearest("tokne-loss-ms", keys), Some("token_loss_ms"));
        assert_eq!(nearest("encrpyt", keys), Some("encrypt"));
        assert_eq!(nearest("Style", keys), Some("style"));
        assert_eq!(nearest("multi", keys), Some("multicast"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("x", keys), None);
        assert_eq!(nearest("n4", ["n1", "n2"]), None);
        assert_eq!(nearest("N2", ["n1", "n2"]), Some("n2"));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
