//! What nodes do when something runs short: descriptors, room on a disk, or servers that leave
//! processes behind.

mod stage;

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use stage::{Domain, QUORBA, pids, wait_until};

/// A domain whose servers start a process with a session of its own, which says who it is.
fn with_strays() -> Domain {
    let script = format!(
        "setsid sh -c 'echo $$ >> strays; exec sleep 100000' & \
         exec {QUORBA} servant bank --port {{port}}"
    );
    Domain::start_group(&format!(
        "[group.bank]\nlisten = {{listen}}\nmembers = [\"n1\", \"n2\", \"n3\"]\n\
         server = [\"sh\", \"-c\", {script:?}]\nstate_object = \"bank\"\nobject_key = \"bank\"\n"
    ))
}

fn state_dir(domain: &Domain, node: &str) -> PathBuf {
    domain.folder.path().join("quorba-state").join(node)
}

fn strays(domain: &Domain, node: &str) -> Vec<Pid> {
    let text = fs::read_to_string(state_dir(domain, node).join("strays")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}

#[test]
fn whatever_a_server_has_started_ends_with_it_and_with_its_node() {
    let domain = with_strays();
    let running = pids(&domain.wait_healthy());
    for node in ["n1", "n2", "n3"] {
        wait_until("each server has one", || strays(&domain, node).len() == 1);
        assert!(!is_gone(strays(&domain, node)[0]));
    }
    // The status has the node's process first, then its server's.
    let of = |node: &str, at: usize| {
        let mut those = running.iter().filter(|(name, _)| name == node);
        those.nth(at).expect("it runs").1
    };
    kill_process(of("n2", 1), Signal::KILL).expect("it runs");
    wait_until("another server has another", || strays(&domain, "n2").len() == 2);
    wait_until("the first is gone", || is_gone(strays(&domain, "n2")[0]));
    domain.wait_healthy();
    kill_process(of("n3", 0), Signal::KILL).expect("it runs");
    wait_until("nothing of the node is left", || {
        is_gone(strays(&domain, "n3")[0]) && is_gone(of("n3", 1))
    });
    domain.signal(Signal::TERM);
    wait_until("nothing of the others is left", || {
        ["n1", "n2"].iter().all(|node| strays(&domain, node).into_iter().all(is_gone))
    });
}
