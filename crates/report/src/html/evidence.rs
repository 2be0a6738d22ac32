//! Which series of a question are worth embedding, and their thinned values.
//!
//! A run has hundreds of series. The page carries throughput, p95 and p99 of every run, some that
//! every engineer asks for, and those that moved most and most consistently from level to level.
//! How they are ranked decides only what is shown first; no verdict depends on it.

use std::collections::{BTreeMap, BTreeSet};

use store::{ResultFile, Series};

use super::gather::Question;
use super::pattern::matches;
use super::thin::{self, Grid, Track};

/// Points per run of throughput and latency.
const MAIN_POINTS: usize = 300;
/// Points per run of every other series.
const EVIDENCE_POINTS: usize = 120;
/// Values that a page carries of other series at most: about 2 MB of text.
const EVIDENCE_BUDGET: usize = 400_000;
/// Blocks per level that the ranking looks at.
const RANKED_BLOCKS: usize = 3;
/// Log ratio from which a series counts as having moved otherwise than throughput did.
const TELLING: f64 = 0.1;

/// Shown where they exist, moved or not. `*` stands for anything.
const ALWAYS: [&str; 16] = [
    "load.generator.busiest",
    "host.cpu.user",
    "host.cpu.system",
    "host.cpu.iowait",
    "host.cpu.steal",
    "host.pressure.*.some",
    "host.disk.*write*",
    "host.disk.*util*",
    "host.disk.*busy*",
    "server*.cpu*",
    "server*.memory*",
    "server*.io.write_bytes",
    "server*.cgroup.throttled*",
    "server.status.Innodb_os_log_fsyncs",
    "server.status.Innodb_data_fsyncs",
    "server.status.Innodb_row_lock_waits",
];

/// What a series is to the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Transactions per second.
    Throughput,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Anything else.
    Evidence,
}

/// One series of all runs of a question.
#[derive(Clone, Debug)]
pub struct SeriesSet {
    /// Dotted name.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// What it is to the page.
    pub role: Role,
    /// Largest ratio of a level to the baseline, where it moved alike in every block looked at.
    pub moved: Option<f64>,
    /// It moved otherwise than throughput did; a counter of work done moves with throughput and
    /// explains nothing.
    pub telling: bool,
    /// One for each run of the question, in its order.
    pub tracks: Vec<Option<Track>>,
    /// One for each cell that has the series.
    pub medians: Vec<MedianTrack>,
}

/// The median over a cell's runs.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MedianTrack {
    /// Index into the question's levels.
    pub level: usize,
    /// Index into the question's points.
    pub point: usize,
    /// The series.
    pub track: Track,
}

/// Chooses and reads.
pub fn choose(file: &ResultFile, question: &Question) -> crate::Result<Vec<SeriesSet>> {
    let names = names_of(file, question)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let moved = ranking(file, question, &names)?;
    let throughput = moved.get("load.tps").copied().unwrap_or(1.0);
    let mut chosen: Vec<SeriesSet> = names
        .iter()
        .map(|(name, unit)| SeriesSet {
            name: name.clone(),
            unit: unit.clone(),
            role: role_of(name),
            moved: moved.get(name).copied(),
            telling: moved.get(name).is_some_and(|ratio| distance(*ratio, throughput) > TELLING),
            tracks: Vec::new(),
            medians: Vec::new(),
        })
        .collect();
    let budget = (EVIDENCE_BUDGET / (EVIDENCE_POINTS * question.runs.len().max(1))).clamp(10, 48);
    let always = |s: &SeriesSet| ALWAYS.iter().any(|pattern| matches(pattern, &s.name));
    let distance = |s: &SeriesSet| s.moved.map_or(0.0, |ratio| distance(ratio, throughput));
    let order = |a: &SeriesSet, b: &SeriesSet| {
        let near = distance(b).total_cmp(&distance(a));
        a.role.cmp(&b.role).then(near).then(a.name.cmp(&b.name))
    };
    chosen.sort_by(order);
    let main = chosen.iter().filter(|s| s.role != Role::Evidence).count();
    let evidence = chosen.split_off(main);
    // Half of the places at least go to what moved: the usual suspects must not fill the page.
    let (usual, others): (Vec<_>, Vec<_>) = evidence.into_iter().partition(always);
    let others: Vec<_> = others.into_iter().filter(|s| s.moved.is_some()).collect();
    let for_others = others.len().min(budget.saturating_sub(usual.len()).max(budget / 2));
    chosen.extend(others.into_iter().take(for_others));
    chosen.extend(usual.into_iter().take(budget - for_others));
    chosen.sort_by(order);
    read(file, question, &mut chosen)?;
    Ok(chosen)
}

/// Reads the chosen series of every run, thins them, and takes the medians over each cell's runs.
fn read(file: &ResultFile, question: &Question, chosen: &mut [SeriesSet]) -> crate::Result<()> {
    let wanted: Vec<String> = chosen.iter().map(|s| s.name.clone()).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let mut grids: Vec<Option<Grid>> = vec![None; chosen.len()];
    let mut buckets: Vec<Vec<Option<BTreeMap<i64, f64>>>> = vec![Vec::new(); chosen.len()];
    for run in &question.runs {
        let mut of_run: BTreeMap<String, Series> = series_of(file, run.stored.id, &wanted)?
            .into_iter()
            .filter(|series| !series.at_s.is_empty())
            .map(|series| (series.name.clone(), series))
            .collect();
        for (index, set) in chosen.iter_mut().enumerate() {
            let Some(series) = of_run.remove(&set.name) else {
                set.tracks.push(None);
                buckets[index].push(None);
                continue;
            };
            let limit = if set.role == Role::Evidence { EVIDENCE_POINTS } else { MAIN_POINTS };
            let span = series.at_s[series.at_s.len() - 1] - series.at_s[0];
            let grid = *grids[index].get_or_insert_with(|| Grid::of(span, limit));
            let means = grid.means(&series.at_s, &series.values);
            set.tracks.push(Some(if set.role == Role::Evidence && series.at_s.len() > limit {
                grid.track(&means)
            } else {
                thin::extremes(&series.at_s, &series.values, limit)
            }));
            buckets[index].push(Some(means));
        }
    }
    for ((set, grid), buckets) in chosen.iter_mut().zip(grids).zip(buckets) {
        let Some(grid) = grid else { continue };
        for point in 0..question.points.len() {
            for level in 0..question.levels.len() {
                let cell = question
                    .runs
                    .iter()
                    .zip(&buckets)
                    .filter(|(run, _)| run.level == level && run.point == point)
                    .filter_map(|(_, buckets)| buckets.as_ref());
                if let Some(track) = grid.median_track(cell) {
                    set.medians.push(MedianTrack { level, point, track });
                }
            }
        }
    }
    Ok(())
}

/// How far a series moved, in log ratio, both from where it was and from where throughput
/// alone would have taken it.
fn distance(ratio: f64, throughput: f64) -> f64 {
    ratio.ln().abs().min((ratio / throughput).ln().abs())
}

/// Names and units over all runs: any run may have series that others lack, be it only because a
/// status series that was always 0 is not stored.
fn names_of(file: &ResultFile, question: &Question) -> crate::Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    for run in &question.runs {
        names.extend(file.series_names(run.stored.id)?);
    }
    Ok(names)
}

/// `server.status.` of `server.status.Innodb_row_lock_waits`: the server whose status it is.
fn status_of(name: &str) -> Option<&str> {
    let end = name.find(".status.")? + ".status.".len();
    Some(&name[..end])
}

/// The status series that a run lacks although it has others of the same server: the sampler leaves
/// out those that were always 0, so they are 0 at the times of the others. Where a server knows no
/// such variable at all, what it counts did not happen there either.
fn zeros(
    file: &ResultFile,
    run: i64,
    wanted: &[&str],
    found: &[Series],
) -> crate::Result<Vec<Series>> {
    let present: BTreeSet<&str> = found.iter().map(|series| series.name.as_str()).collect();
    let absent: Vec<&str> = wanted
        .iter()
        .copied()
        .filter(|name| status_of(name).is_some() && !present.contains(name))
        .collect();
    if absent.is_empty() {
        return Ok(Vec::new());
    }
    let stored = file.series_names(run)?;
    let mut clocks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut zeros = Vec::new();
    for name in absent {
        let Some(server) = status_of(name) else { continue };
        if !clocks.contains_key(server) {
            let other = stored.iter().find(|(other, _)| status_of(other) == Some(server));
            let clock = match other {
                Some((other, _)) => {
                    file.series(run, &[other.as_str()])?.pop().map(|series| series.at_s)
                }
                None => None,
            };
            clocks.insert(server, clock.unwrap_or_default());
        }
        let at_s = clocks.get(server).cloned().unwrap_or_default();
        if !at_s.is_empty() {
            let values = vec![0.0; at_s.len()];
            zeros.push(Series { name: name.to_owned(), unit: String::new(), at_s, values });
        }
    }
    Ok(zeros)
}

/// Some series of a run, those that it lacks because they were always 0 among them.
fn series_of(file: &ResultFile, run: i64, wanted: &[&str]) -> crate::Result<Vec<Series>> {
    let mut found = file.series(run, wanted)?;
    let zeros = zeros(file, run, wanted, &found)?;
    found.extend(zeros);
    Ok(found)
}

fn role_of(name: &str) -> Role {
    match name {
        "load.tps" => Role::Throughput,
        "load.p95" | "load.p95_ms" => Role::P95,
        "load.p99" | "load.p99_ms" => Role::P99,
        _ => Role::Evidence,
    }
}

/// How far each series moved from the baseline, for those that moved the same way in every block
/// looked at, by more than two standard errors of the blocks' log ratios. Looks at a few blocks at
/// the last sweep point, where the load is usually highest.
fn ranking(
    file: &ResultFile,
    question: &Question,
    names: &BTreeMap<String, String>,
) -> crate::Result<BTreeMap<String, f64>> {
    let point = question.points.len().saturating_sub(1);
    let at_point: Vec<_> = question.runs.iter().filter(|run| run.point == point).collect();
    let blocks: BTreeSet<u32> = at_point
        .iter()
        .filter(|run| run.level == 0)
        .map(|run| run.stored.key.block)
        .take(RANKED_BLOCKS)
        .collect();
    let wanted: Vec<&str> = names.keys().map(String::as_str).collect();
    // Name to (block, level, mean over the measured window).
    let mut means: BTreeMap<String, Vec<(u32, usize, f64)>> = BTreeMap::new();
    for run in at_point.iter().filter(|run| blocks.contains(&run.stored.key.block)) {
        for series in series_of(file, run.stored.id, &wanted)? {
            let measured: Vec<f64> = series
                .at_s
                .iter()
                .zip(&series.values)
                .filter(|&(&t, v)| t >= 0.0 && v.is_finite())
                .map(|(_, &v)| v)
                .collect();
            if !measured.is_empty() {
                let mean = measured.iter().sum::<f64>() / measured.len() as f64;
                means.entry(series.name).or_default().push((run.stored.key.block, run.level, mean));
            }
        }
    }
    let moved = means.into_iter().filter_map(|(name, means)| {
        let floor = floor_of(names.get(&name).map_or("", String::as_str));
        (1..question.levels.len())
            .filter_map(|level| moved(&means, level, floor))
            .max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()))
            .map(|ratio| (name, ratio))
    });
    Ok(moved.collect())
}

/// Below this a mean is next to nothing, and a ratio of two such means says nothing.
fn floor_of(unit: &str) -> f64 {
    match unit {
        "fraction" => 0.005,
        "bytes" | "bytes/s" | "B/s" | "B" => 65_536.0,
        "ms" => 0.01,
        _ => 0.5,
    }
}

fn moved(means: &[(u32, usize, f64)], level: usize, floor: f64) -> Option<f64> {
    let of = |block: u32, level: usize| {
        means.iter().find(|(b, l, _)| *b == block && *l == level).map(|(_, _, mean)| *mean)
    };
    let logs: Vec<f64> = means
        .iter()
        .filter(|(_, l, _)| *l == 0)
        .filter_map(|&(block, _, base)| Some((base, of(block, level)?)))
        .filter(|(base, mean)| base.max(*mean) > floor && base.min(*mean) >= 0.0)
        .map(|(base, mean)| (mean.max(floor) / base.max(floor)).ln())
        .collect();
    let n = logs.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let alike = logs.iter().all(|d| d.signum() == mean.signum());
    (alike && mean.abs() > 0.02 && mean.abs() > 2.0 * (variance / n).sqrt()).then(|| mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_moves_alike_in_every_block_counts() {
        let steady =
            [(0, 0, 100.0), (0, 1, 50.0), (1, 0, 104.0), (1, 1, 53.0), (2, 0, 99.0), (2, 1, 49.0)];
        let ratio = moved(&steady, 1, 0.5).expect("it moved");
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        let wavering = [(0, 0, 100.0), (0, 1, 150.0), (1, 0, 100.0), (1, 1, 70.0)];
        assert_eq!(moved(&wavering, 1, 0.5), None);
        let next_to_nothing = [(0, 0, 0.0), (0, 1, 0.1), (1, 0, 0.0), (1, 1, 0.1)];
        assert_eq!(moved(&next_to_nothing, 1, 0.5), None);
        let from_zero = [(0, 0, 0.0), (0, 1, 40.0), (1, 0, 0.0), (1, 1, 44.0)];
        assert!(moved(&from_zero, 1, 0.5).is_some_and(|ratio| ratio > 50.0));
        let one_block = [(0, 0, 100.0), (0, 1, 150.0)];
        assert_eq!(moved(&one_block, 1, 0.5), None);
    }
}
