//! Why a command failed, told so that the reader knows what to do next.

use std::fmt;

use serde_json::{Value, json};

use crate::exit::Exit;

/// The codes of what makes a command fail; their texts are in `codes.rs`.
pub mod codes {
    pub const DOMAIN_FILE: &str = "QB-CLI-001";
    pub const NOT_IN_DOMAIN: &str = "QB-CLI-002";
    pub const NOBODY_ANSWERS: &str = "QB-CLI-003";
    pub const TIMED_OUT: &str = "QB-CLI-004";
    pub const REFERENCE: &str = "QB-CLI-005";
    pub const NO_REPLY: &str = "QB-CLI-006";
    pub const FILE: &str = "QB-CLI-007";
    pub const NO_OBJECT_KEY: &str = "QB-CLI-008";
    pub const PROCESS: &str = "QB-CLI-009";
    pub const UNKNOWN_CODE: &str = "QB-CLI-010";
    pub const DEMO: &str = "QB-CLI-011";
    pub const OUTPUT: &str = "QB-CLI-012";
    pub const LAB: &str = "QB-CLI-013";
    pub const CHANGE_REFUSED: &str = "QB-CLI-014";
    pub const BACKUP: &str = "QB-CLI-015";
    pub const BACKUP_FILE: &str = "QB-CLI-016";
    pub const RESTORE_UNSAID: &str = "QB-CLI-017";
    pub const USAGE: &str = "QB-CLI-018";
    pub const STATE_UNSAID: &str = "QB-CLI-019";
    pub const DEFINITION: &str = "QB-CLI-021";
    pub const DELETE_UNSAID: &str = "QB-CLI-022";
    pub const NOT_APPLIED: &str = "QB-CLI-023";
    pub const NAMING: &str = "QB-CLI-024";
    pub const EVENTS: &str = "QB-CLI-025";
    pub const NODE_STATE_DIR: &str = "QB-NODE-001";
    pub const NODE_STATE_FILE: &str = "QB-NODE-002";
    pub const NODE_LISTEN: &str = "QB-NODE-003";
    pub const NODE_RESOLVE: &str = "QB-NODE-004";
    pub const NODE_RESOURCES: &str = "QB-NODE-005";
    pub const NODE_COROSYNC: &str = "QB-NODE-006";
    pub const NODE_LOG: &str = "QB-NODE-007";
    pub const NODE_IN_USE: &str = "QB-NODE-008";
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What `quorba explain` knows it by.
    pub code: &'static str,
    /// How the command ends.
    pub exit: Exit,
    /// What failed, and where: one line.
    pub what: String,
    /// What to do next: one line.
    pub next: String,
    more: Box<More>,
}

/// What most failures do not have.
#[derive(Clone, Debug, Default, PartialEq)]
struct More {
    /// More lines, such as the report on a file.
    detail: String,
    /// More for `-o json`.
    data: Value,
}

impl Failure {
    pub fn new(
        code: &'static str,
        exit: Exit,
        what: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        let (what, next) = (what.into(), next.into());
        Self { code, exit, what, next, more: Box::default() }
    }

    /// Adds lines that stand before the message.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.more.detail = detail.into();
        self
    }

    /// Adds the fields of an object to the error's JSON.
    pub fn data(mut self, data: Value) -> Self {
        self.more.data = data;
        self
    }

    /// Standard output cannot be written.
    pub fn output(error: &dyn std::error::Error) -> Self {
        let what = format!("standard output cannot be written: {error}");
        Self::new(codes::OUTPUT, Exit::Failed, what, "check the disk or pipe it goes to")
    }

    pub fn to_json(&self) -> Value {
        let mut error = json!({
            "code": self.code,
            "message": self.what,
            "next": self.next,
            "exit": self.exit as u8,
        });
        if let (Value::Object(error), Value::Object(data)) = (&mut error, &self.more.data) {
            error.extend(data.clone());
        }
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.more.detail)?;
        if !self.more.detail.is_empty() && !self.more.detail.ends_with('\n') {
            f.write_str("\n")?;
        }
        let red = anstyle::AnsiColor::Red.on_default().bold();
        writeln!(f, "{red}error[{}]{red:#}: {}", self.code, self.what)?;
        write!(f, "  next: {}", self.next)
    }
}
