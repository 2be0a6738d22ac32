//! Zipf's law by rejection-inversion.
//!
//! W. Hörmann and G. Derflinger, Rejection-inversion to generate variates from monotone discrete
//! distributions, ACM TOMACS 6(3), 1996: the hat is h(x) = x^−e, whose integral H(x) =
//! (x^(1−e) − 1)/(1−e), or ln x for e = 1, is inverted; a rank k is accepted where the draw lies in
//! the part of the strip that its own probability fills. Nothing is tabulated, and about one draw
//! in ten is rejected at worst. sysbench 1.1 does the same, without scrambling the ranks.

/// Draws ranks of `1..=n`, rank k with probability proportional to k^−e.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    n: f64,
    exponent: f64,
    /// H(1.5) − h(1), where the strip of rank 1 begins.
    low: f64,
    /// H(n + 0.5), where that of rank n ends.
    high: f64,
    /// A rank this little above the inverted draw is accepted without looking further.
    sure: f64,
}

impl Zipf {
    pub(super) fn new(n: u64, exponent: f64) -> Zipf {
        let n = n as f64;
        let mut zipf = Zipf { n, exponent, low: 0.0, high: 0.0, sure: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    #[inline]
    pub(super) fn rank(&self, uniform: &mut impl FnMut() -> f64) -> u64 {
        loop {
            let area = self.high + uniform() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64;
            }
        }
    }

    /// h(x).
    fn hat(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// H(x), as ln x · (exp((1−e)·ln x) − 1)/((1−e)·ln x), which stands near e = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.exponent) * log;
        if scaled.abs() > TINY {
            scaled.exp_m1() / scaled * log
        } else {
            log * (1.0 + scaled / 2.0)
        }
    }

    /// H^−1(y).
    fn inverse(&self, y: f64) -> f64 {
        let scaled = ((1.0 - self.exponent) * y).max(-1.0);
        let log = if scaled.abs() > TINY {
            scaled.ln_1p() / scaled * y
        } else {
            y * (1.0 - scaled / 2.0)
        };
        log.exp()
    }
}

/// Below this the first term of a series is as good as the function.
const TINY: f64 = 1e-8;
