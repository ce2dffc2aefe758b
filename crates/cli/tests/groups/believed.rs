//! Commands believe what runs, and not a file that says something else; what they cannot know they
//! say.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::{text, wait_until};

/// What the command prints, and what it tells besides.
fn both(cluster: &Cluster, arguments: &[&str]) -> (String, String) {
    let output = cluster.quorba(arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    (out, err)
}

#[test]
fn a_reference_is_that_of_what_runs_whatever_the_file_says() {
    let cluster = Cluster::start(&bank("bank", &ALL, "type_id = \"IDL:Old:1.0\""));
    let changed = bank("bank", &ALL, "type_id = \"IDL:New:1.0\"") + &bank("more", &ALL, "");
    cluster.write_file("next", &changed);
    cluster.ok(&["config", "apply", "next.toml"]);
    cluster.wait_healthy();
    // The file of whoever asks is of before, and says another port for the groups' gateways.
    let path = cluster.folder.path().join("quorba.toml");
    let old = fs::read_to_string(&path).expect("written");
    let listen = format!("listen = {}", cluster.first + 6);
    fs::write(&path, old.replace(&listen, &format!("listen = {}", cluster.first + 9)))
        .expect("written");
    let (out, told) = both(&cluster, &["-o", "json", "ior", "make", "bank"]);
    let made: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(made["type_id"], "IDL:New:1.0");
    for node in 0..3 {
        assert_eq!(made["gateways"][node]["port"], cluster.gateway(node));
    }
    assert!(told.contains("says something else of group bank (type_id)"), "{told}");
    let (_, told) = both(&cluster, &["ior", "make", "more"]);
    assert!(!told.contains("says something else"), "{told}");
    // A name that nobody has is told the groups that run.
    let nobody = cluster.refused(&["ior", "make", "bnak"]);
    assert!(nobody.contains("groups: bank, more"), "{nobody}");
    // What the file alone has is not there yet, and that is said.
    cluster.ok(&["group", "delete", "bank", "--yes"]);
    let (_, told) = both(&cluster, &["ior", "make", "bank"]);
    assert!(told.contains("the running domain has no group bank"), "{told}");
}

#[test]
fn where_nobody_answers_the_file_counts() {
    let cluster = Cluster::of_files([&bank("bank", &ALL, ""), "", ""]);
    let (out, told) = both(&cluster, &["ior", "make", "bank"]);
    assert!(out.starts_with("IOR:") && !told.contains("running"), "{out}{told}");
    assert!(cluster.refused(&["ior", "make", "bnak"]).contains("groups: bank"));
}

#[test]
fn a_group_that_came_after_the_end_of_all_nodes_has_lost_nothing_by_it() {
    let mut cluster = Cluster::start(&bank("before", &ALL, ""));
    (0..3).for_each(|node| cluster.kill(node));
    cluster.start_all();
    cluster.wait_healthy();
    cluster.create("later", &bank("later", &ALL, ""), &[]);
    cluster.wait_healthy();
    let notes = cluster.status()["notes"].as_array().cloned().unwrap_or_default();
    let lost: Vec<&Value> = notes.iter().filter(|note| note["fact"] == "memory-lost").collect();
    let [lost] = lost.as_slice() else { panic!("{notes:?}") };
    let what = lost["what"].as_str().expect("words");
    assert!(what.contains("before") && !what.contains("later"), "{what}");
}

#[test]
fn a_node_that_cannot_have_its_file_done_says_so_and_does_it_when_it_can() {
    let mut cluster = Cluster::start("");
    cluster.kill(1);
    cluster.kill(2);
    wait_until("it is alone", || {
        cluster.status()["nodes"][0]["status"]["ring"]["primary"] == false
    });
    cluster.write_file("n1", &bank("bank", &ALL, ""));
    cluster.signal(0, Signal::HUP);
    wait_until("it says that it waits", || {
        cluster.log(0).contains("what the domain file says cannot be ordered now")
    });
    cluster.start_node(1);
    cluster.start_node(2);
    wait_until("the group is there", || (0..3).all(|node| cluster.groups_at(node) == ["bank"]));
    cluster.wait_healthy();
    assert_eq!(cluster.bank(2, "bank").increment("a").expect("it answers"), 1);
}

/// More groups than are looked at in one go.
#[test]
fn a_status_of_many_groups_has_each_of_them_once_while_groups_come_and_go() {
    const MANY: usize = 300;
    let away = |name: &str| {
        format!(
            "[group.{name}]\nmembers = [\"n1\"]\nconnect = \"127.0.0.1:1\"\nstate_object = \"s\"\n"
        )
    };
    let names: Vec<String> = (0..MANY).map(|number| format!("g{number:03}")).collect();
    let file: String = names.iter().map(|name| away(name)).collect();
    let mut cluster = Cluster::of_files([&file; 3]);
    cluster.start_all();
    let seen = || {
        wait_until("all nodes answer", || {
            let status = cluster.status();
            (0..3).all(|node| !status["nodes"][node]["status"].is_null())
        });
        let all = (0..3).map(|node| cluster.groups_at(node));
        all.map(|mut all| {
            all.retain(|name| name != "comes");
            all
        })
    };
    wait_until("all are there", || seen().all(|all| all == names));
    for _ in 0..5 {
        cluster.create("comes", &away("comes"), &[]);
        assert!(seen().all(|all| all == names));
        wait_until("it is seen", || cluster.groups_at(0).contains(&"comes".to_owned()));
        cluster.ok(&["group", "delete", "comes", "--yes"]);
        assert!(seen().all(|all| all == names));
        assert!(!cluster.groups_at(0).contains(&"comes".to_owned()));
    }
}

#[test]
fn who_creates_a_group_is_told_what_is_wrong_or_unwise() {
    let cluster = Cluster::start("");
    let create = |servers: &[&str]| {
        let mut words = vec!["group", "create", "bank", "--members", "n1,n2"];
        words.extend(["--state-object", "state"]);
        servers.iter().for_each(|server| words.extend(["--connect", server]));
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = |servers: &[&str]| {
        let words = create(servers);
        cluster.refused(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let one = "n1=corbaloc::127.0.0.1:1/bank";
    let path = cluster.folder.path().join("empty.ior");
    fs::write(path, "\n").expect("written");
    for (wrong, why) in [
        ("n2=nowhere.ior", "no host:port, no reference and no file"),
        ("n2=empty.ior", "begins neither with IOR:"),
        ("n2=IOR:zz", "no hexadecimal digit"),
        ("n2", "there is no = in it"),
    ] {
        let said = refused(&[one, wrong]);
        assert!(said.contains(why) && said.contains("next:"), "{wrong}: {said}");
    }
    let mut other =
        quorba_giop::corbaloc::parse("corbaloc::127.0.0.1:2/b").expect("it is one").to_ior();
    let mut first =
        quorba_giop::corbaloc::parse("corbaloc::127.0.0.1:1/b").expect("it is one").to_ior();
    (first.type_id, other.type_id) = (b"IDL:Bank:1.0".to_vec(), b"IDL:Echo:1.0".to_vec());
    let words = create(&[&format!("n1={first}"), &format!("n2={other}")]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (out, told) = both(&cluster, &words);
    assert!(out.contains("group bank is created"), "{out}");
    assert!(told.contains("IDL:Echo:1.0"), "what is unwise is told: {told}");
    assert!(told.contains("gives its state to the others"), "{told}");
    // Nobody is there, and status says what helps.
    wait_until("status says so", || {
        let shown = text(&cluster.quorba(&["status", "bank"]).stdout);
        shown.contains("does not serve yet") && shown.contains("start that server, or say where")
    });
}
