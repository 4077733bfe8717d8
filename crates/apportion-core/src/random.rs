//! Reproducible random numbers: the same seed gives the same numbers on every machine and in every release.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers from a seed, by SplitMix64 (Steele, Lea and Flood 2014, DOI
/// 10.1145/2660193.2660195). Not for cryptography.
///
/// # Example
/// ```
/// let mut random = apportion_core::random::Random::new(1);
/// assert_eq!([random.below(6), random.below(6), random.below(6)], [3, 4, 5]);
/// ```
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to `n` - 1; 0 for an `n` of 0. Its probability is off by at most n / 2^64.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.word()) * n as u128) >> 64) as usize
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as published with the reference implementation (Vigna 2015).
    #[test]
    fn the_stream_is_splitmix64s() {
        let mut random = Random::new(1_234_567);
        let words = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.word(), random.word(), random.word()], words);
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.below(5)] += 1);
        assert!(seen.iter().all(|&count| (140..=260).contains(&count)), "{seen:?}");
        assert!((0..1000).map(|_| random.unit()).all(|x| (0.0..1.0).contains(&x)));
        assert_eq!(random.below(0), 0);
    }
}
