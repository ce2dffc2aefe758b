//! How much of this machine is left to a run: what processes that do not belong to it take of the
//! cores.
//!
//! What it is not: how busy the machine is. What attackers, nodes and servers take is the run's
//! own, and excuses nothing.

use std::collections::BTreeMap;
use std::fs;

/// The least part that counts as left: with less, nothing can be said anyhow.
const LEFT_MIN: f64 = 0.1;

/// Clock ticks since the machine started.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Of all cores.
    all: u64,
    /// Of these, those in which they had nothing to do.
    idle: u64,
    /// What this process has used, and all that come of it.
    ours: u64,
}

impl Look {
    pub(super) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        // user nice system idle iowait irq softirq steal; what follows is in these.
        let ticks = |text: &str| -> Vec<u64> {
            text.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect()
        };
        let ticks = stat.lines().next().map(ticks).unwrap_or_default();
        let idle = ticks.iter().skip(3).take(2).sum();
        Self { all: ticks.iter().sum(), idle, ours: ours() }
    }

    /// The part of the machine that others have not taken since.
    pub(super) fn left_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let busy = all.saturating_sub(self.idle.saturating_sub(before.idle));
        let others = busy.saturating_sub(self.ours.saturating_sub(before.ours));
        if all == 0 { 1.0 } else { (1.0 - others as f64 / all as f64).max(LEFT_MIN) }
    }
}

/// Of this process and all below it, with those that they have waited for.
fn ours() -> u64 {
    let mut used: BTreeMap<u32, u64> = BTreeMap::new();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok) {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let (Some(pid), Some((parent, ticks))) = (pid, parse(&stat)) {
            used.insert(pid, ticks);
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut wanted, mut sum) = (vec![std::process::id()], 0);
    while let Some(pid) = wanted.pop() {
        sum += used.remove(&pid).unwrap_or_default();
        wanted.extend(children.remove(&pid).unwrap_or_default());
    }
    sum
}

/// The parent, and utime, stime, cutime and cstime (proc(5)). A name may have spaces in it.
fn parse(stat: &str) -> Option<(u32, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let times = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    Some((fields.get(1)?.parse().ok()?, times.sum::<Option<u64>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_takes_itself_is_left_to_it() {
        let look = |all, idle, ours| Look { all, idle, ours };
        let part = |later: Look| later.left_since(look(1000, 500, 100));
        assert_eq!(part(look(1200, 700, 100)), 1.0);
        assert_eq!(part(look(1200, 500, 300)), 1.0, "all of it is ours");
        assert_eq!(part(look(1200, 550, 150)), 0.5);
        assert_eq!(part(look(1200, 500, 100)), LEFT_MIN);
    }

    #[test]
    fn a_line_of_a_process_is_read() {
        let stat = "77 (a b) c) S 12 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1";
        assert_eq!(parse(stat), Some((12, 100)));
        assert!(ours() < Look::now().all);
    }
}
