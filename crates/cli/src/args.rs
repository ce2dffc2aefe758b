//! The command line as data: help, completions and man pages all come from here.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use quorba_base::policy::{OnDoubt, Style};

use crate::command;

/// The heading of the options that every command has.
const COMMON: &str = "Options of every command";

/// Fault tolerance for CORBA: several replicas, one object reference, no lost and no doubled calls
#[derive(Debug, Parser)]
#[command(name = "quorba", version, after_help = crate::exit::HELP, max_term_width = 100)]
pub struct Arguments {
    /// What is printed: text for people, or JSON, one object to a line
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text)]
    #[arg(value_name = "text|json", hide_possible_values = true, help_heading = COMMON)]
    pub output: Format,

    /// The longest that the command may take, such as 500ms, 10s, 1m30s
    #[arg(long, global = true, value_name = "TIME", value_parser = duration, help_heading = COMMON)]
    pub timeout: Option<Duration>,

    /// When to print in colour; auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    #[arg(value_name = "auto|always|never", hide_possible_values = true, help_heading = COMMON)]
    pub color: Colour,

    #[command(subcommand)]
    pub command: Command,
}

/// What a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// When to print in colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    Auto,
    Always,
    Never,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(command::demo::Demo),
    Node(command::node::Node),
    Up(command::up::Up),
    Status(command::status::Status),
    Group(command::group::Group),
    Backup(command::backup::Backup),
    Restore(command::restore::Restore),
    Ior(command::ior::Ior),
    Naming(command::naming::Naming),
    Outside(command::outside::Outside),
    Faults(command::faults::Faults),
    Events(command::events::Events),
    Ping(command::ping::Ping),
    Key(command::key::Key),
    Config(command::config::Config),
    Lab(command::lab::Lab),
    Sim(command::sim::Sim),
    Explain(command::explain::Explain),
    Completions(command::completions::Completions),
    Man(command::man::Man),
    #[command(hide = true)]
    Servant(command::demo::Servant),
    #[command(hide = true)]
    Serve(command::serve::Serve),
    #[command(hide = true)]
    ExecServer(command::node::ExecServer),
}

/// Whether a command line that could not be read asks for JSON.
pub fn wants_json(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let names = |word: &str| word == "-o" || word == "--output";
    let pairs = words.windows(2).any(|pair| names(&pair[0]) && pair[1] == "json");
    pairs
        || words.iter().any(|word| matches!(word.as_str(), "-ojson" | "--output=json" | "-o=json"))
}

/// `--config`, for the commands that need the domain file.
#[derive(Clone, Debug, Args)]
pub struct DomainFile {
    /// The domain file
    #[arg(short, long, value_name = "FILE", env = "QUORBA_CONFIG", hide_env_values = true)]
    #[arg(default_value = "quorba.toml")]
    pub config: PathBuf,
}

/// Reads the word of a style.
pub fn style() -> impl TypedValueParser<Value = Style> {
    let words = PossibleValuesParser::new(Style::ALL.iter().map(|style| style.as_str()));
    words.try_map(|word| Style::from_word(&word).ok_or("there is no such style"))
}

/// By which name the nodes recognise a command.
#[derive(Debug, Args)]
pub struct Operation {
    /// A name for this command; repeated under the same name, it is done once [default: a new one]
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
}

impl Operation {
    pub fn operation(&self) -> String {
        self.operation.clone().unwrap_or_else(crate::catalog::new_operation)
    }
}

/// What is to be done with a call of unknown outcome.
pub fn on_doubt() -> impl TypedValueParser<Value = OnDoubt> {
    let words = PossibleValuesParser::new(OnDoubt::ALL.iter().map(|rule| rule.as_str()));
    words.try_map(|word| OnDoubt::from_word(&word).ok_or("there is no such rule"))
}

/// More is no time that anybody waits.
const TIME_MAX: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// Reads a time such as `1m30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("a time longer than 0".to_owned()),
        // No clock counts so far that it could be added.
        Ok(time) if time > TIME_MAX => Err("a time of at most 36500 days".to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err("a time has a unit: 500ms, 10s, 1m30s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("36500days").is_ok());
        for wrong in ["5", "0s", "-1s", "soon", "", "36501days", "500000000000years"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }
}
