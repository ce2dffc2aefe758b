//! What came of a run: stages, and within them tests, cases and steps, each passed, failed or
//! skipped.
//!
//! What it is not: an opinion of what was printed. A stage's exit code says whether it failed; what
//! it printed says how much it did. Invariants: what was not done is neither passed nor silent, a
//! stage that did nothing has not passed, and every skip is named with its reason.

use std::fmt::Write as _;

use quorba_lab::skips::Skip;

/// The commands whose last line is a sum: `interop: 3 passed, 0 failed, 51 skipped`.
pub(super) const SUMS: [&str; 8] =
    ["deny", "deps", "examples", "idl", "interop", "hostile", "no-std", "order"];
const PASSED: [&str; 4] = ["passed", "present", "done", "within brackets"];
const FAILED: [&str; 2] = ["failed", "outside"];
/// How the reason of an ignored test begins that is none: it runs within another, or is more of one
/// that runs.
const NO_TESTS: [&str; 2] = ["a part of ", "on demand"];

/// How many tests, cases or steps ended in which way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skips: Vec<Skip>,
    /// Of those that passed, tests of libtest's: to it, one that has skipped itself is one.
    by_libtest: usize,
}

impl Count {
    /// What was skipped besides, as the stage has written down.
    pub(super) fn told(&mut self, skips: Vec<Skip>) {
        self.passed -= skips.len().min(self.by_libtest);
        self.by_libtest -= skips.len().min(self.by_libtest);
        self.skips.extend(skips);
    }

    /// One more line of what a stage prints.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("test ") {
            if let Some(counts) = test.strip_prefix("result: ") {
                let counts = counts.split_once(". ").map_or("", |(_, counts)| counts);
                let before = self.passed;
                self.add(counts.split("; "));
                self.by_libtest += self.passed - before;
            } else if let Some((name, reason)) = test.split_once(" ... ignored") {
                self.ignored(name, reason.strip_prefix(", ").unwrap_or("no reason given"));
            }
        } else if let Some((name, counts)) = line.split_once(": ")
            && SUMS.contains(&name)
        {
            self.add(counts.split(", "));
        }
    }

    fn ignored(&mut self, name: &str, reason: &str) {
        if !NO_TESTS.iter().any(|begin| reason.starts_with(begin)) {
            self.skips.push(Skip { name: name.to_owned(), reason: reason.to_owned() });
        }
    }

    /// Parts such as `3 passed`.
    fn add<'a>(&mut self, parts: impl Iterator<Item = &'a str>) {
        for part in parts {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            if PASSED.contains(&what) {
                self.passed += number;
            } else if FAILED.contains(&what) {
                self.failed += number;
            }
        }
    }
}

/// How a stage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    Failed(String),
    /// Nothing of it could be done.
    Skipped(String),
}

impl Ended {
    /// What a stage whose command gave `result` came to. `counts`: it says how much it did.
    pub(super) fn of(result: Result<(), String>, counts: bool, count: &Count) -> Self {
        let skipped = count.skips.len();
        match result {
            Err(reason) => Self::Failed(reason),
            Ok(()) if !counts || count.passed > 0 => Self::Passed,
            Ok(()) if count.failed > 0 => {
                Self::Failed(format!("{} failed, and it ended well", count.failed))
            }
            Ok(()) if skipped > 0 => Self::Skipped(format!("all {skipped} of it were skipped")),
            Ok(()) => Self::Failed("it did nothing, or does not say what".into()),
        }
    }
}

/// What the run demands of skips.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    /// One fails the run.
    pub(super) is_strict: bool,
    /// Not these, by name.
    pub(super) may_skip: Vec<String>,
}

impl Rule {
    fn forbids(&self, name: &str) -> bool {
        self.is_strict && !self.may_skip.iter().any(|may| may == name)
    }
}

/// All stages that are over.
#[derive(Default)]
pub(super) struct Tally {
    stages: Vec<(&'static str, Ended, Count)>,
}

impl Tally {
    pub(super) fn add(&mut self, stage: &'static str, ended: Ended, count: Count) {
        self.stages.push((stage, ended, count));
    }

    /// Every skip that fails the run. What stands for a whole stage counts as one, if nothing in
    /// it was named.
    fn forbidden(&self, rule: &Rule) -> Vec<String> {
        let mut names = Vec::new();
        for (stage, ended, count) in &self.stages {
            let within = count.skips.iter().map(|skip| skip.name.as_str());
            let whole =
                (count.skips.is_empty() && matches!(ended, Ended::Skipped(_))).then_some(*stage);
            names.extend(within.chain(whole).filter(|name| rule.forbids(name)));
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// Whether everything is as it should be. A run that did nothing is not.
    pub(super) fn is_good(&self, rule: &Rule) -> bool {
        let failed = |(_, ended, _): &(_, Ended, _)| matches!(ended, Ended::Failed(_));
        let passed = |(_, ended, _): &(_, Ended, _)| *ended == Ended::Passed;
        !self.stages.iter().any(failed)
            && self.stages.iter().any(passed)
            && self.forbidden(rule).is_empty()
    }

    /// Each skip and each failure by name, and in the last line how many there were.
    pub(super) fn text(&self, rule: &Rule) -> String {
        let mut text = String::new();
        let mut stages = [0; 3];
        let mut inside = [0; 3];
        for (stage, ended, count) in &self.stages {
            for Skip { name, reason } in &count.skips {
                let _written = writeln!(text, "skipped: {stage}: {name}: {reason}");
            }
            inside[0] += count.passed;
            inside[1] += count.failed;
            inside[2] += count.skips.len();
            match ended {
                Ended::Passed => stages[0] += 1,
                Ended::Failed(reason) => {
                    stages[1] += 1;
                    let _written = writeln!(text, "failed: {stage}: {reason}");
                }
                Ended::Skipped(reason) => {
                    stages[2] += 1;
                    let _written = writeln!(text, "skipped: the whole of {stage}: {reason}");
                }
            }
        }
        for name in self.forbidden(rule) {
            let _written = writeln!(text, "failed: {name} must not be skipped (--strict)");
        }
        let sum = |[passed, failed, skipped]: [usize; 3]| {
            format!("{passed} passed, {failed} failed, {skipped} skipped")
        };
        let _written =
            write!(text, "stages: {}; tests, cases and steps: {}", sum(stages), sum(inside));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(name: &str) -> Skip {
        Skip { name: name.into(), reason: "no root".into() }
    }

    fn count(passed: usize, failed: usize, skips: &[&str]) -> Count {
        let skips = skips.iter().map(|name| skip(name)).collect();
        Count { passed, failed, skips, by_libtest: 0 }
    }

    fn read(text: &str) -> Count {
        let mut count = Count::default();
        text.lines().for_each(|line| count.read(line));
        count
    }

    const STRICT: Rule = Rule { is_strict: true, may_skip: Vec::new() };

    #[test]
    fn what_libtest_prints_is_counted_and_an_ignored_test_is_a_skip() {
        let found = read(
            "running 4 tests\n\
             test one ... ok\n\
             test two ... ignored, needs root\n\
             test three ... ignored\n\
             test more ... ignored, on demand: more seeds\n\
             test writer ... ignored, a part of the test below\n\
             test five ... FAILED\n\
             test result: FAILED. 1 passed; 1 failed; 4 ignored; 0 measured; 7 filtered out; \
             finished in 0.01s\n\
             test result: ok. 20 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 1.00s\n",
        );
        assert_eq!((found.passed, found.failed), (21, 1));
        let reason = |text: &str| text.to_owned();
        let skips = [("two", "needs root"), ("three", "no reason given")]
            .map(|(name, why)| Skip { name: name.into(), reason: reason(why) });
        assert_eq!(found.skips, skips);
    }

    #[test]
    fn a_test_that_skips_itself_has_not_passed_whatever_libtest_says() {
        let mut found = read("test result: ok. 5 passed; 0 failed; 0 ignored");
        found.told(vec![skip("disks"), skip("lab")]);
        assert_eq!((found.passed, found.skips.len()), (3, 2));
        let mut all = read("test result: ok. 1 passed; 0 failed; 0 ignored");
        all.told(vec![skip("disks")]);
        assert!(matches!(Ended::of(Ok(()), true, &all), Ended::Skipped(_)));
        let mut cases = read("interop: 3 passed, 0 failed, 1 skipped");
        cases.told(vec![skip("a")]);
        assert_eq!((cases.passed, cases.skips.len()), (3, 1), "these are counted apart");
    }

    #[test]
    fn the_last_lines_of_our_commands_are_counted() {
        let one = |text: &str| (read(text).passed, read(text).failed);
        assert_eq!(one("interop: 3 passed, 2 failed, 51 skipped"), (3, 2));
        assert_eq!(one("examples: 3 present, 1 done, 2 skipped, 1 failed"), (4, 1));
        assert_eq!(one("hostile: 40 within brackets, 2 outside"), (40, 2));
        assert_eq!(one("order: 2 passed, 0 failed, 3 skipped"), (2, 0));
        assert_eq!(one("error: 3 passed, 2 failed"), (0, 0), "somebody else's");
    }

    /// As `interop: 0 passed, 51 skipped` once was.
    #[test]
    fn a_stage_all_of_whose_cases_were_skipped_has_not_passed() {
        let none = count(0, 0, &["a", "b"]);
        assert!(matches!(Ended::of(Ok(()), true, &none), Ended::Skipped(_)));
        assert_eq!(Ended::of(Ok(()), true, &count(1, 0, &["b"])), Ended::Passed);
        assert!(matches!(Ended::of(Ok(()), true, &count(0, 0, &[])), Ended::Failed(_)));
        assert!(matches!(Ended::of(Ok(()), true, &count(0, 1, &["a"])), Ended::Failed(_)));
        assert!(matches!(Ended::of(Err("1".into()), true, &none), Ended::Failed(_)));
        assert_eq!(Ended::of(Ok(()), false, &count(0, 0, &[])), Ended::Passed, "it only checks");
    }

    #[test]
    fn the_last_line_counts_stages_and_what_is_in_them_and_skips_are_named() {
        let mut tally = Tally::default();
        tally.add("format", Ended::Passed, Count::default());
        tally.add("tests", Ended::Passed, count(30, 0, &["disks"]));
        tally.add("interop", Ended::Skipped("all".into()), count(0, 0, &["a", "b"]));
        tally.add("order", Ended::Failed("exit 1".into()), count(1, 2, &[]));
        let text = tally.text(&Rule::default());
        let last = "stages: 2 passed, 1 failed, 1 skipped; tests, cases and steps: 31 passed, \
                    2 failed, 3 skipped";
        assert_eq!(text.lines().last(), Some(last));
        for line in ["skipped: tests: disks: no root", "skipped: interop: b: no root"] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        assert!(text.contains("failed: order: exit 1"));
        assert!(!tally.is_good(&Rule::default()));
    }

    #[test]
    fn a_skip_fails_a_strict_run_unless_it_is_allowed_by_name() {
        let mut tally = Tally::default();
        tally.add("tests", Ended::Passed, count(30, 0, &["disks"]));
        assert!(tally.is_good(&Rule::default()) && !tally.is_good(&STRICT));
        assert!(tally.text(&STRICT).contains("failed: disks must not be skipped"));
        let may = |name: &str| Rule { may_skip: vec![name.into()], ..STRICT };
        assert!(tally.is_good(&may("disks")));
        assert!(!tally.is_good(&may("disk")), "by its whole name");
        tally.add("corosync", Ended::Skipped("no headers".into()), Count::default());
        assert!(!tally.is_good(&may("disks")), "a whole stage is a skip, too");
        assert!(tally.is_good(&Rule::default()));
        let both = Rule { may_skip: vec!["disks".into(), "corosync".into()], ..STRICT };
        assert!(tally.is_good(&both));
    }

    #[test]
    fn a_run_that_did_nothing_is_not_good() {
        assert!(!Tally::default().is_good(&Rule::default()));
        let mut tally = Tally::default();
        tally.add("interop", Ended::Skipped("all".into()), count(0, 0, &["a"]));
        assert!(!tally.is_good(&Rule::default()));
    }
}
