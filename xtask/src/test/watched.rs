//! A stage's command while it runs: what it prints is shown, and counted.
//!
//! What it is not: a judge. Invariants: every line is shown as it comes; what the command says that
//! it skipped is read from a file that is this stage's own.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use quorba_lab::skips::{self, SKIPS};

use super::tally::Count;
use crate::workspace::target;

/// How long a line may be on its way when the command has ended. One that has left a process behind
/// which holds its output is not waited for any longer.
const LINES_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command of the stage `name`.
pub(super) fn run(command: Command, name: &str) -> (Result<(), String>, Count) {
    run_to(command, name, io::stdout())
}

fn run_to(
    mut command: Command,
    name: &str,
    mut shown: impl Write + Send + 'static,
) -> (Result<(), String>, Count) {
    let mut count = Count::default();
    let path = target().join(format!("skips-{}", name.replace(' ', "-")));
    let result = (|| -> io::Result<Result<(), String>> {
        fs::create_dir_all(target())?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let path = std::path::absolute(&path)?;
        let mut child = command.env(SKIPS, &path).stdout(Stdio::piped()).spawn()?;
        let printed = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut printed = BufReader::new(printed);
            let mut line = Vec::new();
            while printed.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                // Whoever runs us may have gone.
                let _ = shown.write_all(&line);
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let status = child.wait()?;
        while let Ok(line) = lines.recv_timeout(LINES_WITHIN) {
            count.read(line.trim_end());
        }
        count.told(skips::read(&path)?);
        Ok(if status.success() { Ok(()) } else { Err(format!("{status}")) })
    })();
    (result.unwrap_or_else(|error| Err(error.to_string())), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_a_command_says_is_counted_and_what_it_skips_is_read_from_its_file() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; \
                      printf 'disks\\tno root\\n' >> \"$QUORBA_SKIPS\"; printf 'no end'";
        for _ in 0..2 {
            let (result, count) = run_to(shell(script), "test of two skips", io::sink());
            assert_eq!((result, count.passed, count.failed), (Ok(()), 2, 0));
            assert_eq!(count.skips.len(), 1, "the file begins anew: {:?}", count.skips);
            assert_eq!((&*count.skips[0].name, &*count.skips[0].reason), ("disks", "no root"));
        }
        let (result, count) = run_to(shell("exit 3"), "test of none", io::sink());
        assert!(result.is_err() && count == Count::default());
    }
}
