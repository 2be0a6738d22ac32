//! Reproducible randomness: the same numbers on every machine and in every version.
//!
//! The standard library's hasher and other people's generators promise neither, and a plan that
//! changes with a compiler would break every study that is resumed.

/// FNV-1a, 64 bits: offset basis and prime as published by Fowler, Noll and Vo.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

/// The finaliser of splitmix64 (Steele, Lea and Flood 2014; constants of Stafford's variant 13):
/// a bijection in which every bit of the input moves every bit of the output.
pub(crate) fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// splitmix64.
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        SplitMix(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `bound`, every one alike (Lemire 2019, with rejection). `bound` is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Of the 2^64 numbers, the first 2^64 mod bound would make some results likelier.
        let biased = bound.wrapping_neg() % bound.max(1);
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= biased {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        let mut hash = Fnv::new();
        hash.write(b"foobar");
        assert_eq!(hash.finish(), 0x8594_4171_f739_67e8);
        let mut stream = SplitMix::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| stream.next()).collect();
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_are_alike() {
        // 60 000 draws of six: chi-square with 5 degrees of freedom stays below 20.5 in 999 of
        // 1000 streams, and this stream is fixed.
        let mut stream = SplitMix::new(7);
        let mut counts = [0_i64; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        let chi: f64 = counts.iter().map(|n| ((n - 10_000) as f64).powi(2) / 10_000.0).sum();
        assert!(chi < 20.5, "{counts:?}");
        assert!((0..100).all(|_| stream.below(1) == 0));
    }
}
