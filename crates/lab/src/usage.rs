//! What processes and the machine have used so far, read from `/proc`.
//!
//! Invariants: figures only grow, so that the difference of two readings is what was used
//! between them; a process that has ended and was not waited for yet can still be read.

use std::fs;
use std::io;
use std::time::Duration;

/// What one process has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, of all its threads, in microseconds; counted in clock ticks.
    pub user_us: u64,
    /// CPU time in the kernel, likewise.
    pub system_us: u64,
    /// How often one of its threads that still live gave up the core to wait for something.
    pub sleeps: u64,
}

impl Usage {
    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
        }
    }
}

/// What the whole machine has used since it began, in microseconds of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineUsage {
    /// All time in which a core did something.
    pub busy_us: u64,
    /// Time in which a core of a virtual machine would have run, and the host ran others.
    pub stolen_us: u64,
}

/// What the process `pid` has used.
///
/// # Errors
/// `/proc` does not know it, or has another form.
pub fn of_process(pid: u32) -> io::Result<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (user_us, system_us) = cpu_of_stat(&stat).ok_or_else(|| unread("stat"))?;
    let mut sleeps = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while we look.
        if let Ok(status) = fs::read_to_string(task?.path().join("status")) {
            sleeps += sleeps_of_status(&status).ok_or_else(|| unread("status"))?;
        }
    }
    Ok(Usage { user_us, system_us, sleeps })
}

/// How long the threads of the process `pid` that still live have run, to the nanosecond: for
/// differences that clock ticks are too coarse for.
///
/// # Errors
/// As [`of_process`].
pub fn run_time_of_process(pid: u32) -> io::Result<Duration> {
    let mut ran_ns = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end while we look.
        if let Ok(stat) = fs::read_to_string(task?.path().join("schedstat")) {
            let ran = stat.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok());
            ran_ns += ran.ok_or_else(|| unread("schedstat"))?;
        }
    }
    Ok(Duration::from_nanos(ran_ns))
}

/// Memory that the process `pid` has at the moment, in KiB.
///
/// # Errors
/// As [`of_process`].
pub fn resident_kib(pid: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).ok_or_else(|| unread("status"))
}

/// What the machine has used.
///
/// # Errors
/// `/proc` has another form.
pub fn of_machine() -> io::Result<MachineUsage> {
    let stat = fs::read_to_string("/proc/stat")?;
    machine_of_stat(&stat).ok_or_else(|| unread("stat"))
}

fn unread(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/proc has a {what} of another form"))
}

fn ticks_us(ticks: u64) -> u64 {
    ticks * 1_000_000 / rustix::param::clock_ticks_per_second()
}

fn cpu_of_stat(stat: &str) -> Option<(u64, u64)> {
    // The name, in parentheses, may hold blanks and parentheses; utime is field 14.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse().ok().map(ticks_us);
    Some((next()?, next()?))
}

fn sleeps_of_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

fn machine_of_stat(stat: &str) -> Option<MachineUsage> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some(MachineUsage {
        busy_us: ticks_us(user + nice + system + irq + softirq),
        stolen_us: ticks_us(steal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process;

    #[test]
    fn fields_are_found_behind_a_strange_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 90 0 0 0 300 200 9 9 20 0 1 0 100 0 0";
        let second = rustix::param::clock_ticks_per_second();
        let us = |ticks: u64| ticks * 1_000_000 / second;
        assert_eq!(cpu_of_stat(stat), Some((us(300), us(200))));
        assert_eq!(cpu_of_stat("7 (a"), None);
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(sleeps_of_status(status), Some(12));
        let machine = machine_of_stat("cpu  1 2 3 400 50 6 7 8 0 0\ncpu0 1\n").expect("a line");
        assert_eq!(machine.busy_us, us(1 + 2 + 3 + 6 + 7));
        assert_eq!(machine.stolen_us, us(8));
        assert_eq!(machine_of_stat("cpu 1 2\n"), None);
    }

    #[test]
    fn this_process_uses_time() {
        let before = of_process(process::id()).expect("we are here");
        let used = loop {
            std::hint::black_box((0..100_000u64).sum::<u64>());
            let used = of_process(process::id()).expect("we are here").since(before);
            if used.user_us + used.system_us > 0 {
                break used;
            }
        };
        let machine = of_machine().expect("a machine");
        assert!(machine.busy_us >= used.user_us + used.system_us);
    }
}
