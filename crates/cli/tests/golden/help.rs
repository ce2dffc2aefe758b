//! The help of every command, and what is said of a wrong command line.

use crate::bench::Bench;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["demo"],
    &["node"],
    &["up"],
    &["status"],
    &["backup"],
    &["backup", "show"],
    &["restore"],
    &["group"],
    &["group", "create"],
    &["group", "delete"],
    &["group", "list"],
    &["group", "skip"],
    &["ior"],
    &["ior", "show"],
    &["ior", "make"],
    &["ping"],
    &["lab"],
    &["lab", "run"],
    &["sim"],
    &["key"],
    &["key", "new"],
    &["config"],
    &["config", "check"],
    &["config", "apply"],
    &["explain"],
    &["completions"],
    &["man"],
];

#[test]
fn help_of_every_command() {
    let bench = Bench::new();
    for command in COMMANDS {
        let mut arguments = command.to_vec();
        arguments.push("--help");
        let name =
            format!("help_{}", if command.is_empty() { "".into() } else { command.join("_") });
        insta::assert_snapshot!(name, bench.run(&arguments));
    }
}

#[test]
fn wrong_command_lines() {
    let bench = Bench::new();
    let lines: &[&[&str]] = &[
        &[],
        &["stauts"],
        &["status", "--wacth"],
        &["status", "--timeout", "5"],
        &["status", "-o", "xml"],
        &["key", "new"],
        &["help", "stauts"],
        &["-o", "json", "stauts"],
        &["status", "--wacth", "--output=json"],
    ];
    let transcript: Vec<String> = lines.iter().map(|line| bench.run(line)).collect();
    insta::assert_snapshot!("wrong_command_lines", transcript.join("\n"));
}

#[test]
fn version_is_the_package_s() {
    let expected = format!("quorba {}\n", env!("CARGO_PKG_VERSION"));
    assert!(Bench::new().run(&["--version"]).contains(&expected));
}

#[test]
fn completions_and_man_pages_name_every_command() {
    let bench = Bench::new();
    let bash = bench.run(&["completions", "bash"]);
    let man = bench.run(&["man"]);
    for command in COMMANDS.iter().filter_map(|command| command.first()) {
        assert!(bash.contains(command), "{command} in the completions");
        assert!(man.contains(command), "{command} in the manual page");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(bench.run(&["completions", shell]).ends_with("--- exit 0\n"), "{shell}");
    }
}

#[test]
fn man_pages_are_written_one_per_command() {
    let bench = Bench::new();
    bench.write("man/.keep", "");
    assert!(bench.run(&["man", "--write-to", "man"]).ends_with("--- exit 0\n"));
    for page in ["quorba.1", "quorba-status.1", "quorba-config-check.1"] {
        assert!(bench.path("man").join(page).is_file(), "{page}");
    }
    insta::assert_snapshot!("man_nowhere", bench.run(&["man", "--write-to", "nowhere"]));
}
