//! Equal shares, the baseline of every comparison.

/// Divides `n` units into equal shares; the first n mod p processors get one unit more. O(p).
///
/// # Panics
/// If there is no processor.
pub fn even(n: u64, processors: usize) -> Vec<u64> {
    assert!(processors > 0, "shares need a processor");
    let p = processors as u64;
    (0..p).map(|i| n / p + u64::from(i < n % p)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_to_the_first() {
        assert_eq!(even(10, 4), [3, 3, 2, 2]);
        assert_eq!(even(2, 3), [1, 1, 0]);
        assert_eq!(even(0, 2), [0, 0]);
    }
}
