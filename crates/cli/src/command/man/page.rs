//! All commands as one page of Markdown, for docs/reference.
//!
//! What it is not: a text of its own; every word comes from the definitions that `--help` prints.
//!
//! Invariants: hidden commands and options are left out; an option that every command takes is
//! told once; no line is longer than a document's lines may be.

use clap::{Arg, Command};

use crate::text::wrapped;

/// Documents keep to so many columns.
const WIDTH: usize = 100;

/// The page of `command` and of all commands below it.
pub(super) fn markdown(command: &mut Command) -> String {
    command.build();
    let mut page = String::from(
        "# Commands\n\n\
         `quorba help COMMAND` prints the same. This page is made by `quorba man --markdown`,\n\
         and a test keeps it so.\n\n## Options of all commands\n",
    );
    for arg in command.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set()) {
        page.push_str(&item(arg));
    }
    if let Some(codes) = command.get_after_help() {
        page.push_str(&format!("\n## Exit codes\n\n```\n{codes}\n```\n"));
    }
    for below in command.get_subcommands() {
        section(below, "quorba", 2, &mut page);
    }
    page
}

fn section(command: &Command, above: &str, depth: usize, page: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{above} {}", command.get_name());
    page.push_str(&format!("\n{} {name}\n\n", "#".repeat(depth)));
    let about = command.get_long_about().or(command.get_about());
    page.push_str(&paragraphs(&about.map(ToString::to_string).unwrap_or_default()));
    let below: Vec<&Command> =
        command.get_subcommands().filter(|below| below.get_name() != "help").collect();
    if below.is_empty() {
        page.push_str(&format!("\n```\n{}\n```\n", usage(command, &name)));
    }
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
    for arg in command.get_arguments().filter(own) {
        page.push_str(&item(arg));
    }
    for below in below {
        section(below, &name, depth + 1, page);
    }
}

/// The name with all positional arguments; options stand below.
fn usage(command: &Command, name: &str) -> String {
    let mut words = vec![name.to_owned()];
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set();
    if command.get_opts().any(|arg| own(&arg)) {
        words.push("[OPTIONS]".to_owned());
    }
    words.extend(command.get_positionals().filter(own).map(|arg| {
        let text = arg.to_string();
        if arg.is_required_set() { text } else { format!("[{}]", text.trim_matches(['[', ']'])) }
    }));
    words.join(" ")
}

/// One option or argument: how it is written, what it means, its words and its default.
fn item(arg: &Arg) -> String {
    let mut text = match arg.get_short() {
        Some(short) => format!("`-{short}`, `{arg}`: "),
        None => format!("`{arg}`: "),
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
    text.push_str(help.unwrap_or_default().replace('\n', " ").trim_end_matches('.'));
    text.push('.');
    let shown: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|word| !word.is_hide_set())
        .map(|word| format!("`{}`", word.get_name()))
        .collect();
    let is_told = !arg.is_hide_possible_values_set() && !shown.is_empty();
    if arg.get_action().takes_values() && is_told {
        text.push_str(&format!(" One of {}.", shown.join(", ")));
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        text.push_str(&format!(" Default {}.", defaults.join(" ")));
    }
    if let Some(variable) = arg.get_env() {
        text.push_str(&format!(" Also by `{}`.", variable.to_string_lossy()));
    }
    let lines = wrapped(&text, WIDTH - 2, "");
    format!("\n- {}\n", lines.replace('\n', "\n  "))
}

/// Paragraphs are wrapped; lines that begin with blanks are commands, and stay.
fn paragraphs(text: &str) -> String {
    let mut made = Vec::new();
    for paragraph in text.split("\n\n") {
        if paragraph.starts_with("  ") {
            let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
            made.push(format!("```\n{}\n```", lines.join("\n")));
        } else {
            made.push(wrapped(paragraph, WIDTH, ""));
        }
    }
    format!("{}\n", made.join("\n\n"))
}
