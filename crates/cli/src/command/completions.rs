//! `quorba completions`: what a shell needs to complete the command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Print the completions for a shell
///
/// For instance: quorba completions bash > /etc/bash_completion.d/quorba
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "quorba", &mut script);
        context.print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Ok)
    }
}
