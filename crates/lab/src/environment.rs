//! What a figure depends on besides the program: the machine, its state, and how it was built.
//!
//! Invariant: what cannot be found out is absent, never guessed.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::placement::cores;

/// Above this load average somebody else uses the cores.
const LOAD_MAX: f64 = 1.0;

/// Facts of the machine and the build, read before the first block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Environment {
    /// The processor's name.
    pub cpu: Option<String>,
    /// Cores that the run may use.
    pub cores: usize,
    /// Kernel and its version.
    pub kernel: String,
    /// The frequency governor of the first core; none if the machine does not let it be seen.
    pub governor: Option<String>,
    /// What the kernel does with an idle core: driver and governor of cpuidle.
    pub idle: Option<String>,
    /// Whether a hypervisor is below.
    pub is_virtual: bool,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Option<[f64; 3]>,
    /// Version of this program.
    pub version: &'static str,
    /// Commit of the working directory's repository, `-changed` if files differ from it.
    pub commit: Option<String>,
    /// `release`, or `debug` if the program was built with debug assertions.
    pub build: &'static str,
}

impl Environment {
    /// Reads the facts.
    #[must_use]
    pub fn read() -> Self {
        let uname = rustix::system::uname();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let system = |path: &str| {
            let text = fs::read_to_string(format!("/sys/devices/system/cpu/{path}")).ok()?;
            Some(text.trim().to_owned())
        };
        let idle = || {
            let driver = system("cpuidle/current_driver")?;
            Some(format!("{driver}, {}", system("cpuidle/current_governor")?))
        };
        Self {
            cpu: cpu_field(&cpuinfo, "model name").map(str::to_owned),
            cores: cores().len(),
            kernel: [uname.sysname(), uname.release()].map(|part| part.to_string_lossy()).join(" "),
            governor: system("cpu0/cpufreq/scaling_governor"),
            idle: idle(),
            is_virtual: cpu_field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            load_average: fs::read_to_string("/proc/loadavg").ok().and_then(|text| load(&text)),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
        }
    }

    /// Why figures from here would mislead; empty if nothing is known against them.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.build != "release" {
            faults.push("this is a debug build, and only a release build is fast".to_owned());
        }
        faults.extend(self.busy());
        faults
    }

    /// That somebody else uses the cores, if so.
    #[must_use]
    pub fn busy(&self) -> Option<String> {
        let [minute, ..] = self.load_average.filter(|[minute, ..]| *minute > LOAD_MAX)?;
        Some(format!(
            "the load average of the last minute is {minute:.2}: somebody else uses the cores"
        ))
    }
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn load(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split(' ').map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-changed") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Environment {
        let load_average = Some([0.2, 3.0, 3.0]);
        Environment { build: "release", load_average, ..Environment::read() }
    }

    #[test]
    fn a_busy_machine_and_a_debug_build_are_faults() {
        assert!(quiet().faults().is_empty());
        let busy = Environment { load_average: Some([1.5, 0.0, 0.0]), ..quiet() };
        assert_eq!(busy.faults().len(), 1);
        assert!(busy.faults()[0].contains("1.50"));
        let debug = Environment { build: "debug", ..busy };
        assert_eq!(debug.faults().len(), 2);
    }

    #[test]
    fn fields_are_found() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU: fast\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_field(cpuinfo, "model name"), Some("A CPU: fast"));
        assert_eq!(cpu_field(cpuinfo, "absent"), None);
        assert_eq!(load("0.10 1.5 2 1/90 7\n"), Some([0.1, 1.5, 2.0]));
        assert_eq!(load("none"), None);
    }
}
