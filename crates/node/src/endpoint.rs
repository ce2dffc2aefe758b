//! Where a member's server listens: a port, or a file of this machine.
//!
//! Invariant: nothing here waits.

use quorba_net::{Poller, Stream};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The longest path of a socket that the system takes.
const PATH_BYTES_MAX: usize = 107;

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerEndpoint {
    /// An address of TCP.
    Address(SocketAddr),
    /// A socket of this machine, which takes the kernel a third of the work.
    File(PathBuf),
}

impl ServerEndpoint {
    /// A file that the server has yet to make.
    ///
    /// # Errors
    /// Why there can be none, for the operator.
    pub(crate) fn file(path: PathBuf) -> Result<Self, String> {
        let bytes = path.as_os_str().len();
        if bytes > PATH_BYTES_MAX {
            return Err(format!(
                "the path of its socket has {bytes} bytes, and the system takes {PATH_BYTES_MAX}: \
                 {}; give the node a shorter state_dir",
                path.display()
            ));
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("{} is in the way: {error}", path.display()))
            }
            _ => Ok(Self::File(path)),
        }
    }

    /// Its port, if it has one.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Address(address) => Some(address.port()),
            Self::File(_) => None,
        }
    }

    /// A connection that is there or comes about, of which nothing is waited for.
    pub(crate) fn probe_connect(&self) -> io::Result<Socket> {
        let (domain, address) = match self {
            Self::Address(address) => (Domain::for_address(*address), SockAddr::from(*address)),
            Self::File(path) => (Domain::UNIX, SockAddr::unix(path)?),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address) {
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            connected => connected?,
        }
        Ok(socket)
    }

    /// The same, as a stream.
    pub(crate) fn open(&self, token: u64, poller: &Poller) -> io::Result<Stream> {
        match self {
            Self::Address(address) => Stream::connect(*address, token, poller),
            Self::File(path) => Stream::connect_local(path, token, poller),
        }
    }
}

impl fmt::Display for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "port {}", address.port()),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_a_former_server_left_is_cleared_away_and_a_path_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.sock");
        drop(UnixListener::bind(&path).expect("bound"));
        assert!(path.exists(), "a socket's file outlives its socket");
        let endpoint = ServerEndpoint::file(path.clone()).expect("a endpoint");
        assert!(!path.exists() && endpoint.probe_connect().is_err());
        let _listener = UnixListener::bind(&path).expect("bound again");
        assert!(endpoint.probe_connect().is_ok());
        let refused =
            ServerEndpoint::file(folder.path().join("x".repeat(100))).expect_err("too long");
        assert!(refused.contains("a shorter state_dir"), "{refused}");
    }
}
