//! The random stream of one operation.

/// xoshiro256++ (Blackman and Vigna), seeded through SplitMix64 from what the operation is: same
/// seed, same bytes, whatever the order in which connections happen to run.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of attempt `attempt` at operation `sequence` of `stream` (a connection, a table).
    #[inline]
    pub fn new(seed: u64, stream: u64, sequence: u64, attempt: u32) -> Rng {
        // Each ingredient passes the mixer before the next is added, so that neighbours in any of
        // them share nothing.
        let mut mixer = seed;
        for ingredient in [stream, sequence, u64::from(attempt)] {
            mixer = split_mix(&mut mixer) ^ ingredient;
        }
        Rng { state: [(); 4].map(|()| split_mix(&mut mixer)) }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound` by multiplication; the bias is below `bound / 2^64`. 0 for a bound
    /// of 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[inline]
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn follows_the_published_vectors() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let vector: [u64; 6] = [
            41943041,
            58720359,
            3588806011781223,
            3591011842654386,
            9228616714210784205,
            9973669472204895162,
        ];
        assert_eq!(vector.map(|_| rng.next_u64()), vector);
        let mut state = 1477776061723855037;
        let vector: [u64; 3] = [1985237415132408290, 2979275885539914483, 13511426838097143398];
        assert_eq!(vector.map(|_| split_mix(&mut state)), vector);
    }

    #[test]
    fn an_operation_is_a_function_of_its_ingredients() {
        let mut seen = HashSet::new();
        for seed in 0..4 {
            for stream in 0..8 {
                for sequence in 0..8 {
                    for attempt in 0..4 {
                        let first = Rng::new(seed, stream, sequence, attempt).next_u64();
                        assert_eq!(first, Rng::new(seed, stream, sequence, attempt).next_u64());
                        assert!(seen.insert(first), "two operations share a stream");
                    }
                }
            }
        }
    }

    #[test]
    fn bounded_draws_are_flat() {
        let mut rng = Rng::new(1, 2, 3, 0);
        let (mut counts, draws) = ([0u32; 10], 100_000);
        for _ in 0..draws {
            counts[rng.below(10) as usize] += 1;
            let unit = rng.unit();
            assert!((0.0..1.0).contains(&unit));
        }
        let expected = f64::from(draws) / 10.0;
        let chi_square: f64 =
            counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi_square < 27.88, "chi-square {chi_square}, p < 0.001 with 9 degrees of freedom");
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }
}
