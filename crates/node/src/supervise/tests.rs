//! Servers that come, go and change, with real processes and sockets; what keeps a process here is
//! a shell that does what a keeper does.

use super::*;
use quorba_admin::status::ServerState;
use quorba_config::{Domain, DomainKey, check_text};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

const FILE: &str = "[domain]\nid = \"d\"\nkey_file = \"key\"\n[node.n1]\nhost = \"127.0.0.1\"\n\
    [group.bank]\nlisten = 5000\nmembers = [\"n1\"]\n";

/// It says when it begins, with its server's command, and when it ends, which it does when it is
/// told so.
const KEEPER: &str =
    "echo begins $1 >> $LIVES; echo $$ >&0; head -c 1 > /dev/null; sleep 0.1; echo ends >> $LIVES";

const GROUP: GroupId = GroupId(4);

type News = Receiver<(GroupId, Life, ServerNews)>;

struct Scene {
    folder: tempfile::TempDir,
    supervisors: Supervisors,
    news: News,
}

fn domain(more: &str) -> Domain {
    let key = |_: &Path| Ok(vec![DomainKey::from_bytes([7; 32])]);
    let read = check_text(Path::new("quorba.toml"), &format!("{FILE}{more}"), key);
    read.domain.unwrap_or_else(|| panic!("{}", read.report))
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = domain("server = [\"a\", \"{port}\"]").nodes[0].clone();
        node.state_dir = folder.path().to_path_buf();
        let me = NodeId::new(0).expect("a node");
        let (tell, news) = channel();
        let site = SupervisorContext { me, node, reserve: Reserve::default() };
        let supervisors =
            Supervisors::start(site, move |id, life, what| tell.send((id, life, what)).is_ok());
        Self { folder, supervisors: supervisors.expect("it starts"), news }
    }

    /// A group whose server is started here, by this command.
    fn ours(&self, command: &str) -> Opened {
        let lives = self.folder.path().join("lives");
        let keeper = KEEPER.replace("$LIVES", &lives.display().to_string());
        let launcher = Launcher {
            prefix: vec!["sh".into(), "-c".into(), keeper],
            calls: Vec::new(),
            urls: Vec::new(),
            gateways: Vec::new(),
            news: String::new(),
            leaders: String::new(),
            figures: None,
            own_gateway: None,
        };
        let group = domain(&format!("server = [\"{command}\", \"{{port}}\"]")).groups.remove(0);
        Opened::new(Arc::new(group), Some(Arc::new(launcher)), None)
    }

    /// What was said of lives, when it is that much.
    fn lives(&self, count: usize) -> Vec<String> {
        loop {
            let text = fs::read_to_string(self.folder.path().join("lives")).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(Into::into).collect();
            if lines.len() >= count {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The next news of the server that is meant now.
    fn next(&self) -> ServerNews {
        loop {
            let patience = Duration::from_secs(60);
            let (id, life, what) = self.news.recv_timeout(patience).expect("more is to come");
            if self.supervisors.is_current(id, life) {
                return what;
            }
        }
    }
}

fn elsewhere(port: u16, more: &str) -> Opened {
    let group = domain(&format!("connect = {{ n1 = \"127.0.0.1:{port}\" }}\n{more}"));
    Opened::new(Arc::new(group.groups[0].clone()), None, None)
}

#[test]
fn a_server_that_somebody_else_runs_is_found_when_it_comes_and_when_it_comes_back() {
    let mut scene = Scene::new();
    let port = quorba_net::free_ports(1).expect("a port")[0];
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    scene.supervisors.open(GROUP, elsewhere(address.port(), ""));
    let reason = || scene.supervisors.status_of(&[GROUP])[GROUP].reason.clone();
    while reason().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        reason().as_deref(),
        Some(&*format!(
            "{address} does not serve yet: it accepts no connections on {address}, where its node \
             connects"
        ))
    );
    for _ in 0..2 {
        let listener = TcpListener::bind(address).expect("its port");
        assert!(
            matches!(scene.next(), ServerNews::Up(ServerEndpoint::Address(at)) if at == address)
        );
        let status = &scene.supervisors.status_of(&[GROUP])[GROUP];
        assert_eq!((status.state, status.port), (ServerState::Running, Some(address.port())));
        drop(listener);
        scene.supervisors.restart(GROUP);
    }
    scene.supervisors.stop();
}

#[test]
fn a_later_group_of_a_former_ones_name_is_begun_when_the_formers_server_is_gone() {
    let mut scene = Scene::new();
    scene.supervisors.open(GROUP, scene.ours("a"));
    assert_eq!(scene.lives(1), ["begins a"]);
    scene.supervisors.close(GROUP);
    assert!(scene.supervisors.status_of(&[GROUP]).is_empty(), "nothing is said of it any more");
    let later = GroupId(5);
    scene.supervisors.open(later, scene.ours("b"));
    assert_eq!(scene.lives(3), ["begins a", "ends", "begins b"]);
    scene.supervisors.stop();
    assert_eq!(scene.lives(4), ["begins a", "ends", "begins b", "ends"]);
}

#[test]
fn a_group_that_goes_before_its_turn_has_come_was_never_begun() {
    let mut scene = Scene::new();
    scene.supervisors.open(GROUP, scene.ours("a"));
    scene.lives(1);
    for command in ["b", "c"] {
        scene.supervisors.open(GROUP, scene.ours(command));
    }
    assert_eq!(scene.lives(3), ["begins a", "ends", "begins c"]);
    scene.supervisors.stop();
}

#[test]
fn a_changed_command_counts_when_the_server_is_started_next() {
    let mut scene = Scene::new();
    scene.supervisors.open(GROUP, scene.ours("a"));
    scene.lives(1);
    scene.supervisors.change(GROUP, scene.ours("b"));
    scene.supervisors.give_up(GROUP);
    assert_eq!(scene.lives(2), ["begins a", "ends"]);
    scene.supervisors.want(GROUP);
    assert_eq!(scene.lives(3), ["begins a", "ends", "begins b"]);
    scene.supervisors.stop();
}
