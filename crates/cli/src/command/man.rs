//! `quorba man`: manual pages from the same source as the help.

mod page;

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::args::Arguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, codes};
use crate::text::system_reason;

/// Print the manual page, or write the pages of all commands to a directory
///
/// For instance: quorba man | man -l -
#[derive(Debug, Args)]
pub struct Man {
    /// Write quorba.1, quorba-status.1 and so on into this directory
    #[arg(long, value_name = "DIRECTORY")]
    write_to: Option<PathBuf>,
    /// Print all commands as one page in Markdown, as in docs/reference
    #[arg(long, conflicts_with = "write_to")]
    markdown: bool,
}

impl Man {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        let mut command = Arguments::command();
        if self.markdown {
            context.print(&page::markdown(&mut command))?;
            return Ok(Exit::Ok);
        }
        let Some(directory) = self.write_to else {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(command).render(&mut page);
            rendered.map_err(|error| Failure::output(&error))?;
            context.print(&String::from_utf8_lossy(&page))?;
            return Ok(Exit::Ok);
        };
        clap_mangen::generate_to(command, &directory).map_err(|error| {
            let shown = directory.display();
            let what = format!("{shown} cannot be written: {}", system_reason(&error));
            let next = "choose a directory that exists and that you may write to";
            Failure::new(codes::FILE, Exit::Failed, what, next)
        })?;
        Ok(Exit::Ok)
    }
}
