//! What a process has the system bring to disk: each fsync and fdatasync that succeeded, noted by a
//! small library in front of libc, which the test builds with the C compiler that links Rust.
//!
//! What it is not: a disk that loses what was not synced; that is `SimulatedDisk`. Invariant: a
//! call that is not seen does not count.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

const LIBRARY: &str = include_str!("syncs.c");

/// See the module's text.
pub struct Syncs {
    library: PathBuf,
    notes: PathBuf,
}

/// One call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    pub call: String,
    /// As it is called now.
    pub file: String,
}

impl Syncs {
    /// Builds the library in `folder`, where the notes will be, too.
    pub fn new(folder: &Path) -> Self {
        let (source, library) = (folder.join("syncs.c"), folder.join("syncs.so"));
        fs::write(&source, LIBRARY).expect("written");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let built = compiler.output().expect("the C compiler that links Rust");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Self { library, notes: folder.join("syncs") }
    }

    /// The process that this starts, and all below it, are watched.
    pub fn watch(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("QUORBA_SYNCS", &self.notes);
    }

    /// Starts the ignored test `name` of this program as a process of its own, which is watched,
    /// and waits until it says `ready`.
    pub fn start(&self, name: &str, (key, path): (&str, &Path), ready: &str) -> Watched {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args([name, "--exact", "--ignored", "--nocapture"]).env(key, path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        self.watch(&mut command);
        let mut child = command.spawn().expect("it starts");
        let orders = child.stdin.take().expect("piped");
        let printed = BufReader::new(child.stdout.take().expect("piped"));
        let mut lines: Lines = Box::new(printed.lines().map_while(Result::ok));
        // The name of the harness stands before the first of them.
        lines.find(|line| line.ends_with(ready)).expect("it begins");
        Watched { child, orders, lines }
    }

    /// All so far, in their order.
    pub fn all(&self) -> Vec<Sync> {
        let text = fs::read_to_string(&self.notes).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let sync = |line: &str| {
            let mut words = line.splitn(3, ' ').skip(1);
            let mut word = || words.next().expect("PID CALL FILE").to_owned();
            Sync { call: word(), file: word() }
        };
        whole.lines().map(sync).collect()
    }

    /// How many of a file whose path `is_it`.
    pub fn count(&self, is_it: impl Fn(&str) -> bool) -> usize {
        self.all().iter().filter(|sync| is_it(&sync.file)).count()
    }
}

type Lines = Box<dyn Iterator<Item = String>>;

/// A process that goes on when it is told to, and says what it has done.
pub struct Watched {
    child: Child,
    orders: ChildStdin,
    lines: Lines,
}

impl Watched {
    /// Tells it to go on, and waits until it says `told`.
    pub fn goes_on(&mut self, order: &str, told: &str) {
        writeln!(self.orders, "{order}").expect("it listens");
        self.lines.find(|line| line == told).expect("it goes on");
    }

    /// There are no more orders: it ends well.
    pub fn ends(self) {
        let Self { mut child, orders, lines } = self;
        drop(orders);
        assert!(child.wait().expect("it ends").success());
        drop(lines);
    }
}
