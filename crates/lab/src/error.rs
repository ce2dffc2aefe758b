//! Why a measurement cannot be made, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a run failed. A retry helps only where the text says what to wait for or to change.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no such plan, or it cannot be run: the caller's fault.
    #[error("{0}")]
    Plan(String),
    /// The programs that are measured are not there.
    #[error("echo_client and echo_server are not in {}", path.display())]
    EchoMissing {
        /// Where they were looked for last.
        path: PathBuf,
    },
    /// Figures from this machine, as it is now, would mislead.
    #[error("this is no place to measure: {}", reasons.join("; "))]
    Unfit {
        /// What is wrong with it.
        reasons: Vec<String>,
    },
    /// The system refuses something that a run needs.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// Why not.
        source: io::Error,
    },
    /// One block failed; what was measured before it is kept.
    #[error("{configuration}, {setting}, round {round}: {reason}")]
    Block {
        /// Which configuration.
        configuration: String,
        /// In which setting.
        setting: &'static str,
        /// In which round, from 1.
        round: u32,
        /// What happened, with the end of the logs where they tell more.
        reason: String,
    },
    /// The user ended it.
    #[error("interrupted; what was measured so far is in {}", folder.display())]
    Interrupted {
        /// The run's folder.
        folder: PathBuf,
    },
}

impl LabError {
    /// For `map_err` of what the system refuses.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
