//! Starting a group's server: its command with all that stands for placeholders, as a process with
//! a keeper, and where it will listen.
//!
//! What it is not: what watches it, or knows when. Invariant: nothing of an earlier server is in
//! the way of what this one listens on.

use crate::endpoint::ServerEndpoint;
use crate::groups::Groups;
use crate::lease::PortLease;
use crate::process::KEEP;
use crate::running::{NotStarted, Running};
use crate::times::Times;
use quorba_config::{Group, Node, Placeholder, ServerCommand, Values};
use quorba_engine::replica::GroupId;
use quorba_giop::corbaloc::{self, Corbaloc};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{PathBuf, absolute};
use std::process::{Command, Stdio};

/// The variable with a reference to the node's `Quorba::Figures`.
const FIGURES_VARIABLE: &str = "QUORBA_FIGURES";
/// The variable with the address at which a service's process calls its own group.
const OWN_GATEWAY_VARIABLE: &str = "QUORBA_OWN_GATEWAY";

/// How a group's servers are started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launcher {
    /// The program and first arguments that come before the node's process id and the command.
    pub(crate) prefix: Vec<String>,
    /// By name of a group, or of a server outside: the port on which the server calls it.
    pub(crate) calls: Vec<(String, u16)>,
    /// By name of a server outside: a reference to its object, at that port.
    pub(crate) urls: Vec<(String, String)>,
    /// The gateways of the servers' group, on all nodes.
    pub(crate) gateways: Vec<String>,
    /// A reference to the news of this node.
    pub(crate) news: String,
    /// What stands for `{leaders}`.
    pub(crate) leaders: String,
    /// For the servers of a service: where they tell this node what they do. It stands in their
    /// environment, which other users of the host do not see.
    pub(crate) figures: Option<String>,
    /// For the servers of a service: where they call their own group. It stands there, too.
    pub(crate) own_gateway: Option<SocketAddr>,
}

impl Launcher {
    /// For a group whose servers call at these ports.
    pub(crate) fn new(
        (groups, nodes): (&Groups, &[Node]),
        group: &Group,
        prefix: Vec<String>,
        ports: &[(GroupId, u16)],
    ) -> Self {
        let gateways = nodes.iter().map(|node| group.gateway(node).to_string()).collect();
        let mut launcher =
            Self { prefix, calls: Vec::new(), urls: Vec::new(), gateways, ..Self::default() };
        for (of, port) in ports {
            let Some(name) = groups.name_of(*of) else { continue };
            launcher.calls.push((name.to_owned(), *port));
            let server = groups.outside().get(*of);
            if let Some(endpoint) = server.and_then(|server| server.endpoints.first()) {
                let address = corbaloc::Address::Iiop {
                    version: endpoint.version,
                    host: Ipv4Addr::LOCALHOST.to_string(),
                    port: *port,
                };
                let object_key = endpoint.object_key.to_vec();
                let url = Corbaloc { addresses: vec![address], object_key };
                launcher.urls.push((name.to_owned(), url.to_string()));
            }
        }
        launcher
    }
}

/// Where the server's socket is, if it listens on one.
fn socket_path(group: &Group, node: &Node) -> Result<PathBuf, String> {
    let path = node.state_dir.join(format!("{}.sock", group.name));
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Starts a server of `group` as the member on `node` would be; says where it will listen.
pub(crate) fn launch(
    group: &Group,
    node: &Node,
    launcher: &Launcher,
    server: &ServerCommand,
    time: Option<&Times>,
    (out, err): (Stdio, Stdio),
) -> Result<(Running, ServerEndpoint), NotStarted> {
    if launcher.figures.is_some() && launcher.own_gateway.is_none() {
        // What it decides would be refused at the port of clients. It is started again soon.
        let why = "the port at which it calls its own group could not be opened yet";
        return Err(why.to_owned().into());
    }
    let lease = PortLease::take().map_err(|error| NotStarted::because("no free port", &error))?;
    let port = lease.port();
    let state_dir = node.state_dir.display().to_string();
    let host = node.host.to_string();
    let socket = socket_path(group, node)?;
    let endpoint = if server.uses(Placeholder::Socket) {
        ServerEndpoint::file(socket.clone())?
    } else {
        ServerEndpoint::Address(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let values = Values {
        port,
        socket: &socket.display().to_string(),
        host: &host,
        listen: group.gateway(node).port,
        node: &node.name,
        group: &group.name,
        quorba: launcher.prefix.first().map_or("", String::as_str),
        news: &launcher.news,
        leaders: &launcher.leaders,
        state_dir: &state_dir,
        time: &time.map_or_else(String::new, Times::reference),
        gateways: &launcher.gateways,
        calls: &launcher.calls,
        urls: &launcher.urls,
    };
    let mut arguments = server.command.iter().map(|part| part.fill(&values));
    let (program, rest) = launcher.prefix.split_first().ok_or_else(|| "no launcher".to_owned())?;
    let mut command = Command::new(program);
    command.args(rest).arg(KEEP);
    let wanted = arguments.next().ok_or_else(|| "the command is empty".to_owned())?;
    // The server begins in another folder than its node.
    let wanted = match wanted.contains('/') {
        true => absolute(&wanted).unwrap_or_else(|_| wanted.into()),
        false => wanted.into(),
    };
    command.arg(&wanted).args(arguments);
    for (name, value) in &server.env {
        command.env(name, value.fill(&values));
    }
    if let Some(figures) = &launcher.figures {
        command.env(FIGURES_VARIABLE, figures);
    }
    if let Some(own_gateway) = launcher.own_gateway {
        command.env(OWN_GATEWAY_VARIABLE, own_gateway.to_string());
    }
    let cwd = server.cwd.as_ref().map_or_else(|| state_dir.clone(), |cwd| cwd.fill(&values));
    command.current_dir(cwd).stdout(out).stderr(err);
    Ok((Running::start(command, lease)?, endpoint))
}

/// The object that must be there before a server of `group` counts as up, and the key of the domain
/// file that names it.
pub(crate) fn wanted_key(group: &Group) -> Option<(&'static str, &[u8])> {
    let state = group.state_object.as_deref().map(|key| ("state_object", key));
    state.or(group.object_key.as_deref().map(|key| ("object_key", key)))
}
