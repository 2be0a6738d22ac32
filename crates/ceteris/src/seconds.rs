//! The seconds of a drive: as a line that people know from sysbench, and as series.

use load::Second;
use store::Series;

/// `[ 12s ] conns: 8 tps: ... qps: ... (r/w/o: ...) lat (ms,95%): ... err/s: ...`, and in an open
/// loop `queue: ... late (ms,max): ...`.
pub fn line(second: &Second) -> String {
    let per_s = |count: u64| count as f64 / second.length_s.max(1e-9);
    let errors: u64 = second.errors.values().sum();
    let queries = second.reads + second.writes + second.other;
    let late = second.late_ms_max.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    let queue = second.queued.map(|queued| format!(" queue: {queued} late (ms,max): {late}"));
    format!(
        "[ {}s ] conns: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,95%): {:.2} \
         err/s: {:.2}{}{}",
        second.at_s,
        second.connections,
        per_s(second.transactions),
        per_s(queries),
        per_s(second.reads),
        per_s(second.writes),
        per_s(second.other),
        second.response.p95,
        per_s(errors),
        queue.unwrap_or_default(),
        if second.measured { "" } else { " (warm-up)" },
    )
}

/// The seconds as series; 0 s is where the measured window begins.
pub fn series(seconds: &[Second], warmup_s: f64) -> Vec<Series> {
    let at_s: Vec<f64> = seconds.iter().map(|second| second.end_s - warmup_s).collect();
    let one = |name: &str, unit: &str, value: &dyn Fn(&Second) -> f64| Series {
        name: format!("load.{name}"),
        unit: unit.to_owned(),
        at_s: at_s.clone(),
        values: seconds.iter().map(value).collect(),
    };
    let rate = |name: &str, count: &dyn Fn(&Second) -> u64| {
        one(name, "1/s", &|second| count(second) as f64 / second.length_s.max(1e-9))
    };
    vec![
        rate("tps", &|s| s.transactions),
        rate("reads", &|s| s.reads),
        rate("writes", &|s| s.writes),
        rate("other", &|s| s.other),
        rate("errors", &|s| s.errors.values().sum()),
        rate("retries", &|s| s.retries),
        one("mean", "ms", &|s| s.response.mean),
        one("p50", "ms", &|s| s.response.p50),
        one("p95", "ms", &|s| s.response.p95),
        one("p99", "ms", &|s| s.response.p99),
        one("max", "ms", &|s| s.response.max),
        one("generator.busiest", "fraction", &|s| {
            let shares = s.threads.iter().map(|t| (t.user_s + t.sys_s) / s.length_s.max(1e-9));
            shares.fold(0.0, f64::max)
        }),
        one("generator.longest_wait", "fraction", &|s| {
            let shares = s.threads.iter().map(|t| t.wait_s / s.length_s.max(1e-9));
            shares.fold(0.0, f64::max)
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> Second {
        Second {
            at_s: 12,
            end_s: 12.0,
            length_s: 1.0,
            measured: true,
            connections: 8,
            transactions: 100,
            reads: 0,
            writes: 400,
            other: 200,
            ..Second::default()
        }
    }

    #[test]
    fn a_line_reads_like_sysbench() {
        assert_eq!(
            line(&second()),
            "[ 12s ] conns: 8 tps: 100.00 qps: 600.00 (r/w/o: 0.00/400.00/200.00) \
             lat (ms,95%): 0.00 err/s: 0.00"
        );
        let open = Second { queued: Some(7), late_ms_max: Some(1.5), ..second() };
        assert!(line(&open).ends_with(" err/s: 0.00 queue: 7 late (ms,max): 1.50"));
        let away = Second { late_ms_max: None, ..open };
        assert!(line(&away).ends_with(" queue: 7 late (ms,max): -"));
    }

    #[test]
    fn series_start_at_the_measured_window() {
        let series = series(&[second()], 10.0);
        assert_eq!(series[0].name, "load.tps");
        assert_eq!(series[0].at_s, vec![2.0]);
        assert_eq!(series[0].values, vec![100.0]);
    }
}
