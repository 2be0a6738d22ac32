//! What the whole seconds of a drive that was stopped add up to, as far as they can be added up.

use load::{DriveReport, Second};

use super::outcome::ratio;

/// Adds measured seconds up; `None` if there are none. Latencies are the exact mean, smallest and largest, and no percentile.
pub fn sum(seconds: &[Second]) -> Option<DriveReport> {
    let mut sum = DriveReport::default();
    sum.response.min = f64::INFINITY;
    for second in seconds.iter().filter(|second| second.measured) {
        sum.measured_s += second.length_s;
        sum.transactions += second.transactions;
        sum.reads += second.reads;
        sum.writes += second.writes;
        sum.other += second.other;
        sum.retries += second.retries;
        for (code, count) in &second.errors {
            *sum.errors.entry(code.clone()).or_default() += count;
        }
        if second.transactions > 0 {
            let weight = ratio(second.transactions as f64, sum.transactions as f64);
            sum.response.mean += weight * (second.response.mean - sum.response.mean);
            sum.response.min = sum.response.min.min(second.response.min);
            sum.response.max = sum.response.max.max(second.response.max);
        }
        for thread in &second.threads {
            sum.user_s += thread.user_s;
            sum.sys_s += thread.sys_s;
            if second.length_s > 0.5 {
                let share = ratio(thread.user_s + thread.sys_s, second.length_s).min(1.0);
                sum.peak_thread_share = sum.peak_thread_share.max(share);
                let wait = ratio(thread.wait_s, second.length_s).min(1.0);
                sum.peak_thread_wait = sum.peak_thread_wait.max(wait);
                let occupied = (share + wait).min(1.0);
                sum.peak_thread_occupied = sum.peak_thread_occupied.max(occupied);
            }
        }
    }
    if sum.transactions == 0 {
        sum.response.min = 0.0;
    }
    (sum.measured_s > 0.0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use load::LatencyMs;

    use super::*;

    fn second(transactions: u64, mean: f64, min: f64, max: f64, measured: bool) -> Second {
        Second {
            measured,
            length_s: 1.0,
            transactions,
            reads: 14 * transactions,
            errors: [("1213".to_owned(), 1)].into(),
            response: LatencyMs { mean, min, max, ..LatencyMs::default() },
            ..Second::default()
        }
    }

    #[test]
    fn seconds_add_up_to_what_was_measured_until_the_stop() {
        let seconds = [
            second(1000, 9.0, 0.1, 99.0, false),
            second(10, 1.0, 0.5, 2.0, true),
            second(0, 0.0, 0.0, 0.0, true),
            second(30, 3.0, 0.7, 5.0, true),
        ];
        let report = sum(&seconds).unwrap_or_default();
        assert_eq!((report.measured_s, report.transactions, report.reads), (3.0, 40, 560));
        assert_eq!(report.errors["1213"], 3);
        assert_eq!(report.response.mean, 2.5);
        assert_eq!((report.response.min, report.response.max), (0.5, 5.0));
        assert!(sum(&seconds[..1]).is_none(), "warm-up is not measured");
    }
}
