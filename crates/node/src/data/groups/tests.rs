//! Groups that come, change and go at a node that runs, with real sockets.

use super::*;
use crate::RunOptions;
use crate::priority::Priority;
use quorba_admin::status::ServerState;
use quorba_base::{NodeId, NodeSet};
use quorba_config::{Domain, DomainKey, Endpoint, Host, check_text};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

struct Scene {
    _folder: tempfile::TempDir,
    plane: DataPlane,
    priority: Priority,
    /// The gateway's port.
    port: u16,
    id: GroupId,
    group: Arc<Group>,
}

impl Scene {
    /// A node with one group, whose server is away.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports = quorba_net::free_ports(4).expect("ports");
        let text = format!(
            "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
             ring_port = {}\nadmin = \"127.0.0.1:{}\"\nstate_dir = \"{}\"\n\
             [group.bank]\nlisten = {}\nmembers = [\"n1\"]\n\
             connect = {{ n1 = \"127.0.0.1:{}\" }}\n",
            ports[0],
            ports[1],
            folder.path().display(),
            ports[2],
            ports[3],
        );
        let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
        let read = check_text(Path::new("quorba.toml"), &text, key);
        let domain: Domain = read.domain.unwrap_or_else(|| panic!("{}", read.report));
        let me = NodeId::new(0).expect("a node");
        let options = RunOptions { raise_priority: false, ..RunOptions::default() };
        let plane = DataPlane::start(domain, me, &options).expect("it starts");
        let id = plane.reporter.groups().id_of("bank").expect("a group");
        let group = Arc::clone(plane.reporter.groups().get(id).expect("a group"));
        let priority = Priority::new(false);
        Self { _folder: folder, plane, priority, port: ports[2], id, group }
    }

    /// Runs the node until something is the case.
    fn until(&mut self, mut holds: impl FnMut(&mut DataPlane) -> bool) {
        while !holds(&mut self.plane) {
            let plane = &mut self.plane;
            plane.drain().expect("it goes on");
            let soon = Duration::from_millis(5);
            let timeout = plane.timeout().map_or(soon, |timeout| timeout.min(soon));
            let ready = plane.poller.wait(Some(timeout)).expect("it waits");
            plane.handle_all(ready).expect("it goes on");
            plane.drain().expect("it goes on");
            plane.tick(&mut self.priority).expect("it goes on");
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Group)) -> Arc<Group> {
        let mut group = Group::clone(&self.group);
        change(&mut group);
        Arc::new(group)
    }

    fn connect(&mut self) -> TcpStream {
        let client = TcpStream::connect(("127.0.0.1", self.port)).expect("somebody listens");
        self.until(|plane| !plane.clients.is_empty());
        client
    }
}

#[test]
fn of_a_group_that_was_closed_nothing_is_left_and_it_can_be_opened_again() {
    let mut scene = Scene::new();
    let id = scene.id;
    let mut client = scene.connect();
    scene.plane.close_group(id);
    assert_eq!(client.read(&mut [0; 16]).expect("its end"), 0);
    assert!(
        scene.plane.clients.is_empty() && scene.plane.supervisors.status_of(&[scene.id]).is_empty()
    );
    assert!(scene.plane.reporter.groups().get(id).is_none());
    assert!(TcpStream::connect(("127.0.0.1", scene.port)).is_err());
    // It does not matter how often, and whatever is late.
    scene.plane.close_group(id);
    let mut turns = 0;
    scene.until(|_| {
        turns += 1;
        turns > 20
    });
    scene.plane.open_group(id, Arc::clone(&scene.group)).expect("there is room");
    scene.connect();
    assert_eq!(scene.plane.supervisors.status_of(&[scene.id]).len(), 1);
    scene.plane.supervisors.stop();
}

#[test]
fn a_port_that_is_taken_when_a_group_comes_ends_no_node_and_is_opened_when_it_is_free() {
    let mut scene = Scene::new();
    scene.plane.close_group(scene.id);
    let other = TcpListener::bind(("127.0.0.1", scene.port)).expect("it is free");
    scene.plane.open_group(scene.id, Arc::clone(&scene.group)).expect("it goes on");
    let told = scene.plane.clients.failures();
    assert!(told[0].contains("cannot listen for group bank on 127.0.0.1:"), "{told:?}");
    assert!(told[0].contains("it is tried again every"), "{told:?}");
    drop(other);
    scene.until(|plane| plane.clients.failures().is_empty());
    scene.connect();
    scene.plane.supervisors.stop();
}

#[test]
fn a_node_whose_member_goes_looks_after_its_server_no_more_and_after_one_that_comes() {
    let mut scene = Scene::new();
    let elsewhere = scene.changed(|group| group.members = NodeSet::EMPTY);
    scene.plane.change_group(scene.id, elsewhere).expect("it goes on");
    assert!(scene.plane.supervisors.status_of(&[scene.id]).is_empty());
    assert!(!scene.plane.reporter.has_member(scene.id));
    scene.connect();
    scene.plane.change_group(scene.id, Arc::clone(&scene.group)).expect("it goes on");
    assert_eq!(scene.plane.supervisors.status_of(&[scene.id]).len(), 1);
    scene.plane.supervisors.stop();
}

#[test]
fn a_server_at_another_address_is_looked_for_there() {
    let mut scene = Scene::new();
    let id = scene.id;
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let moved = scene.changed(|group| {
        let Backend::Connect(servers) = &mut group.backend else { panic!("it connects") };
        servers[0].1.endpoint = Endpoint { host: Host::Address([127, 0, 0, 1].into()), port };
    });
    let is_up = |plane: &mut DataPlane| {
        plane.supervisors.status_of(&[id])[id].state == ServerState::Running
    };
    scene.plane.change_group(id, moved).expect("it goes on");
    scene.until(is_up);
    // What does not concern where it is leaves it alone.
    let stuck = scene.changed(|group| {
        let Backend::Connect(servers) = &mut group.backend else { panic!("it connects") };
        servers[0].1.endpoint.port = port;
        group.stuck = Duration::from_secs(77);
    });
    scene.plane.change_group(id, stuck).expect("it goes on");
    assert!(is_up(&mut scene.plane));
    assert_eq!(scene.plane.reporter.stuck_after(id), Duration::from_secs(77));
    scene.plane.change_group(id, Arc::clone(&scene.group)).expect("it goes on");
    scene.until(|plane| plane.supervisors.status_of(&[id])[id].state == ServerState::Down);
    scene.plane.supervisors.stop();
}
