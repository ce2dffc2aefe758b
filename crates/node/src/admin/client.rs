//! The asking side, for the command line, the demo and tests.

use crate::status::Status;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Asks one node.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddr,
    token_file: PathBuf,
}

/// Why a node did not answer. A retry may help for all but the second and the last.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The token cannot be read: the node has not run yet, or belongs to another user.
    #[error("cannot read {}: {source}", path.display())]
    Token {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The node does not take the token: it was started anew, or another node listens there.
    #[error("{address} does not accept the token in {}", path.display())]
    Refused {
        /// Who.
        address: SocketAddr,
        /// Which token.
        path: PathBuf,
    },
    /// Nobody listens.
    #[error("no node answers at {address}: {detail}")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// The time is up.
    #[error("{address} did not answer within {} ms", timeout.as_millis())]
    Timeout {
        /// Who.
        address: SocketAddr,
        /// How long it had.
        timeout: Duration,
    },
    /// The answer is not one.
    #[error("{address} answered something else than a status: {detail}")]
    Answer {
        /// Who.
        address: SocketAddr,
        /// What is wrong with it.
        detail: String,
    },
}

impl Client {
    /// A client of the node whose admin API is at `address` and whose token is in `token_file`.
    #[must_use]
    pub fn new(address: SocketAddr, token_file: impl AsRef<Path>) -> Self {
        Self { address, token_file: token_file.as_ref().to_path_buf() }
    }

    /// The node's status.
    ///
    /// # Errors
    /// If the node does not answer, or not with a status, within `timeout`.
    pub fn status(&self, timeout: Duration) -> Result<Status, AdminError> {
        let address = self.address;
        // Read every time: a node that was started anew has a new token.
        let token = fs::read_to_string(&self.token_file)
            .map_err(|source| AdminError::Token { path: self.token_file.clone(), source })?;
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(timeout)).proxy(None).build().into();
        let answer = agent
            .get(format!("http://{address}/v1/status"))
            .header("Authorization", format!("Bearer {}", token.trim()))
            .call();
        match answer {
            Ok(mut response) => response
                .body_mut()
                .read_json()
                .map_err(|error| AdminError::Answer { address, detail: error.to_string() }),
            Err(ureq::Error::StatusCode(401)) => {
                Err(AdminError::Refused { address, path: self.token_file.clone() })
            }
            Err(ureq::Error::StatusCode(code)) => {
                Err(AdminError::Answer { address, detail: format!("HTTP status {code}") })
            }
            Err(ureq::Error::Timeout(_)) => Err(AdminError::Timeout { address, timeout }),
            Err(error) => Err(AdminError::Unreachable { address, detail: error.to_string() }),
        }
    }
}
