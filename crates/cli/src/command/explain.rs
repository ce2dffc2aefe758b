//! `quorba explain`: what a code means, without a network.

use clap::Args;
use serde_json::json;

use crate::codes::{self, Entry};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::text::{table, wrapped};

const COLUMNS: usize = 80;

/// Say what a code means and what to do about it
///
/// Without a code, all codes are listed.
#[derive(Debug, Args)]
pub struct Explain {
    /// A code such as QB-CFG-003, or the minor code of a CORBA exception
    code: Option<String>,

    /// Print the page of all codes
    #[arg(long, hide = true)]
    markdown: bool,
}

impl Explain {
    pub fn run(self, context: &Context) -> Result<Exit, Failure> {
        if self.markdown {
            context.print(&codes::markdown())?;
            return Ok(Exit::Ok);
        }
        let Some(wanted) = self.code else {
            list(context)?;
            return Ok(Exit::Ok);
        };
        let Some(found) = codes::find(&wanted) else {
            let what = match codes::vendor(&wanted) {
                Some(vendor) => format!("{wanted} is no code of Quorba; it is {vendor}"),
                None => format!("there is no code {wanted:?}"),
            };
            let next = "`quorba explain` lists all codes";
            return Err(Failure::new(failure::codes::UNKNOWN_CODE, Exit::Usage, what, next));
        };
        if context.is_json() {
            context.print_json(&code_json(&found))?;
        } else {
            let text = wrapped(&found.text, COLUMNS, "  ");
            context.print(&format!("{}: {}\n\n{text}\n", found.code, found.title))?;
        }
        Ok(Exit::Ok)
    }
}

fn list(context: &Context) -> Result<(), Failure> {
    if context.is_json() {
        return codes::all().try_for_each(|code| context.print_json(&code_json(&code)));
    }
    let rows = codes::all().map(|code| vec![code.code, code.title]);
    context.print(&table(&["CODE", "MEANING"], rows.collect()))
}

fn code_json(code: &Entry) -> serde_json::Value {
    json!({ "code": code.code, "title": code.title, "text": code.text })
}
