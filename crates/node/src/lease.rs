//! The port of a server that this node starts, held against all other nodes of the machine.
//!
//! A free port is found by binding one, and let go before the server takes it. In between another
//! node could find the same one for its own server; whichever server came second would end, and
//! both nodes would send their calls to the first. So a node first takes a name that belongs to
//! the port, in the space of names that goes with the ports: a socket of no file (unix(7),
//! abstract). The kernel gives the name back when the node ends, however it ends.
//!
//! What it is not: protection against programs that know nothing of it. A server whose port one of
//! them has taken ends, and is started again at another. Invariant: a lease lasts at least as long
//! as the server for which it was made.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What the names begin with; the port follows.
const PREFIX: &str = "quorba server port ";
/// So many ports are tried: far more than servers start at one moment.
const TRIES: usize = 256;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct PortLease {
    port: u16,
    _name: UnixDatagram,
}

impl PortLease {
    /// A port of the loopback address on which nothing listens, and that no other node of this
    /// machine has leased.
    ///
    /// # Errors
    /// The system has no port or no descriptor, or all ports that it offered are leased.
    pub(crate) fn take() -> io::Result<Self> {
        Self::among(std::iter::repeat_with(offered).take(TRIES), PREFIX)
    }

    fn among(offered: impl IntoIterator<Item = io::Result<u16>>, prefix: &str) -> io::Result<Self> {
        for port in offered {
            let port = port?;
            match UnixDatagram::bind_addr(&name(prefix, port)?) {
                Ok(name) => return Ok(Self { port, _name: name }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        let why = "other nodes of this machine have leased all ports that the system offered";
        Err(io::Error::new(io::ErrorKind::AddrInUse, why))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn name(prefix: &str, port: u16) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{prefix}{port}"))
}

/// What the system offers: free now.
fn offered() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_offered_twice_is_leased_once_until_it_is_given_back() {
        // Other tests may run at the same time.
        let prefix = format!("quorba lease test {} ", std::process::id());
        let take =
            |offered: &[u16]| PortLease::among(offered.iter().map(|port| Ok(*port)), &prefix);
        let one = take(&[7]).expect("nobody has it");
        let next = take(&[7, 7, 8]).expect("the next one");
        assert_eq!((one.port(), next.port()), (7, 8));
        assert_eq!(take(&[7, 8]).expect_err("both are leased").kind(), io::ErrorKind::AddrInUse);
        drop(one);
        assert_eq!(take(&[7]).expect("given back").port(), 7);
    }

    #[test]
    fn the_server_can_listen_where_the_lease_is() {
        let lease = PortLease::take().expect("a port");
        TcpListener::bind((Ipv4Addr::LOCALHOST, lease.port())).expect("free for the server");
    }
}
