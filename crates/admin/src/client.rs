//! The asking side, for the command line, the demo and tests.

use crate::catalog::{Catalog, CatalogChange, ChangeRequest, Defined};
use crate::change::{Change, Wanted};
use crate::domain::DomainStatus;
use crate::requests::Requests;
use crate::status::Status;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest answer that is read, in octets: messages of several MB are in base64.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// The longest status of one node, which may have ten thousand groups.
const STATUS_BYTES_MAX: u64 = 64 << 20;

/// Asks one node.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddr,
    token_file: PathBuf,
    /// The node that is asked through the one at `address`.
    at: Option<String>,
}

/// Why a node did not answer. A retry may help for all but the second, a conflict and the last.
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
    /// The node was asked for something that cannot be done.
    #[error("{refusal}")]
    Conflict {
        /// Who.
        address: SocketAddr,
        /// What it says.
        refusal: String,
    },
    /// The node cannot do it now, and perhaps can in a moment.
    #[error("{refusal}")]
    NotNow {
        /// Who.
        address: SocketAddr,
        /// What it says.
        refusal: String,
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
        Self { address, token_file: token_file.as_ref().to_path_buf(), at: None }
    }

    /// A client of the node called `name` that asks it through this client's node.
    #[must_use]
    pub fn at(&self, name: &str) -> Self {
        Self { at: Some(name.to_owned()), ..self.clone() }
    }

    fn url(&self, path: &str) -> String {
        let address = self.address;
        match &self.at {
            None => format!("http://{address}/v1/{path}"),
            Some(node) => format!("http://{address}/v1/at/{node}/{path}"),
        }
    }

    /// What all nodes of the domain say, asked by this client's node.
    ///
    /// # Errors
    /// If the node does not answer, or not with that, within `timeout`.
    pub fn domain(&self, timeout: Duration) -> Result<DomainStatus, AdminError> {
        self.get("domain", ANSWER_BYTES_MAX, timeout)
    }

    /// The node's status.
    ///
    /// # Errors
    /// If the node does not answer, or not with a status, within `timeout`.
    pub fn status(&self, timeout: Duration) -> Result<Status, AdminError> {
        self.get("status", STATUS_BYTES_MAX, timeout)
    }

    fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        bytes_max: u64,
        timeout: Duration,
    ) -> Result<T, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let answer = agent.get(self.url(path)).header("Authorization", bearer).call();
        let mut response = self.checked(answer, timeout)?;
        let body = response.body_mut().with_config().limit(bytes_max).read_json();
        body.map_err(|error| AdminError::Answer { address, detail: error.to_string() })
    }

    /// What a group was delivered lately.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if the node has no member of it; others if it does not answer.
    pub fn requests(
        &self,
        group: &str,
        wanted: Wanted,
        timeout: Duration,
    ) -> Result<Requests, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let Wanted { after, messages } = wanted;
        let answer = agent
            .get(self.url(&format!("groups/{group}/requests")))
            .query("after", after.to_string())
            .query("messages", messages.to_string())
            .header("Authorization", bearer)
            .call();
        let mut response = self.checked(answer, timeout)?;
        if !response.status().is_success() {
            let refusal = response.body_mut().read_to_string().unwrap_or_default();
            return Err(AdminError::Conflict { address, refusal });
        }
        response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_json()
            .map_err(|error| AdminError::Answer { address, detail: error.to_string() })
    }

    /// Changes a group; when this returns, the change has its place in the order.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if the change makes no sense; others if the node does not answer.
    pub fn change(
        &self,
        group: &str,
        change: &Change,
        timeout: Duration,
    ) -> Result<(), AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let answer = agent
            .post(self.url(&format!("groups/{group}")))
            .header("Authorization", bearer)
            .send_json(change);
        let mut response = self.checked(answer, timeout)?;
        if response.status().is_success() {
            return Ok(());
        }
        let refusal = response.body_mut().read_to_string();
        Err(AdminError::Conflict { address, refusal: refusal.unwrap_or_default() })
    }

    /// What must be equal in the domain files of all nodes, as the node's file says it.
    ///
    /// # Errors
    /// If the node does not answer within `timeout`.
    pub fn file(&self, timeout: Duration) -> Result<String, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let answer = agent.get(self.url("file")).header("Authorization", bearer).call();
        let mut response = self.checked(answer, timeout)?;
        let body = response.body_mut().with_config().limit(STATUS_BYTES_MAX).read_to_string();
        body.map_err(|error| AdminError::Answer { address, detail: error.to_string() })
    }

    /// The groups of the domain.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if the node has none to give, [`AdminError::NotNow`] if it has not
    /// now; others if it does not answer.
    pub fn catalog(&self, timeout: Duration) -> Result<Catalog, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let answer = agent.get(self.url("groups")).header("Authorization", bearer).call();
        let mut response = self.done(answer, timeout)?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_json();
        body.map_err(|error| AdminError::Answer { address, detail: error.to_string() })
    }

    /// Creates, changes or deletes a group; when this returns, that has its place in the order.
    /// Asked again under the same `operation`, it is done once.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if it cannot be done, [`AdminError::NotNow`] if it cannot be done
    /// now; others if the node does not answer, and then it may have been done.
    pub fn define(
        &self,
        operation: &str,
        change: &CatalogChange,
        timeout: Duration,
    ) -> Result<Defined, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let address = self.address;
        let wish =
            |text: &str| ChangeRequest { operation: operation.into(), definition: text.into() };
        let answer = match change {
            CatalogChange::Create(definition) => agent
                .post(self.url("groups"))
                .header("Authorization", bearer)
                .send_json(wish(&definition.text)),
            CatalogChange::Change(definition) => agent
                .put(self.url(&format!("groups/{}", definition.name)))
                .header("Authorization", bearer)
                .send_json(wish(&definition.text)),
            CatalogChange::Delete(name) => agent
                .delete(self.url(&format!("groups/{name}")))
                .query("operation", operation)
                .header("Authorization", bearer)
                .call(),
        };
        let mut response = self.done(answer, timeout)?;
        let body = response.body_mut().with_config().limit(STATUS_BYTES_MAX).read_json();
        body.map_err(|error| AdminError::Answer { address, detail: error.to_string() })
    }

    /// A backup of a group, in the format of `quorba_node::backup`, to be read while it comes.
    ///
    /// # Errors
    /// [`AdminError::Conflict`] if there can be none, [`AdminError::NotNow`] if there is none now;
    /// others if the node does not answer. What is read ends early if the node does.
    pub fn backup(&self, group: &str, timeout: Duration) -> Result<impl Read, AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let answer = agent
            .post(self.url(&format!("groups/{group}/backup")))
            .header("Authorization", bearer)
            .send_empty();
        Ok(self.done(answer, timeout)?.into_body().into_reader())
    }

    /// Gives a group the state of a backup; when this returns, one member has it.
    ///
    /// # Errors
    /// As [`Self::backup`].
    pub fn restore(
        &self,
        group: &str,
        backup: &mut dyn Read,
        timeout: Duration,
    ) -> Result<(), AdminError> {
        let (agent, bearer) = self.agent(timeout)?;
        let answer = agent
            .post(self.url(&format!("groups/{group}/restore")))
            .header("Authorization", bearer)
            .send(ureq::SendBody::from_reader(backup));
        self.done(answer, timeout).map(drop)
    }

    /// An answer to something that can be refused.
    fn done(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        timeout: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>, AdminError> {
        let address = self.address;
        let is_passing = matches!(&answer, Ok(response) if response.status().as_u16() == 429);
        let mut response =
            if is_passing { answer.expect("just matched") } else { self.checked(answer, timeout)? };
        if response.status().is_success() {
            return Ok(response);
        }
        let refusal = response.body_mut().read_to_string().unwrap_or_default();
        Err(if is_passing {
            AdminError::NotNow { address, refusal }
        } else {
            AdminError::Conflict { address, refusal }
        })
    }

    /// What asks, and what it says of who asks.
    fn agent(&self, timeout: Duration) -> Result<(ureq::Agent, String), AdminError> {
        // Read every time: a node that was started anew has a new token.
        let token = fs::read_to_string(&self.token_file)
            .map_err(|source| AdminError::Token { path: self.token_file.clone(), source })?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .proxy(None)
            .http_status_as_error(false)
            .build();
        Ok((config.into(), format!("Bearer {}", token.trim())))
    }

    fn checked(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
        timeout: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>, AdminError> {
        let address = self.address;
        match answer {
            Ok(response) => match response.status().as_u16() {
                401 => Err(AdminError::Refused { address, path: self.token_file.clone() }),
                409 => Ok(response),
                504 => Err(AdminError::Timeout { address, timeout }),
                code if !response.status().is_success() => {
                    Err(AdminError::Answer { address, detail: format!("HTTP status {code}") })
                }
                _ => Ok(response),
            },
            Err(ureq::Error::Timeout(_)) => Err(AdminError::Timeout { address, timeout }),
            Err(error) => Err(AdminError::Unreachable { address, detail: error.to_string() }),
        }
    }
}
