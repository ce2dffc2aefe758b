//! The commands of `docs/groups.md`, as they stand there.

use std::path::Path;
use std::process::Command;

use quorba_giop::corbaloc;

use crate::cluster::Cluster;
use crate::members::serve;
use crate::stage::{QUORBA, text};

/// The blocks of commands of the page.
fn blocks(page: &str) -> Vec<&str> {
    let parts = page.split("```sh\n").skip(1);
    parts.filter_map(|part| part.split_once("```")).map(|(block, _)| block).collect()
}

#[test]
fn the_commands_of_the_page_about_groups_do_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/groups.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let cluster = Cluster::start("");
    let port = |node: u16| cluster.first + 15 + node;
    let servers = [("east", 0), ("west", 1)].map(|(name, node)| {
        let url = format!("corbaloc::127.0.0.1:{}/{name}", port(node));
        let ior = corbaloc::parse(&url).expect("it is one").to_ior().to_string();
        let file = cluster.folder.path().join(format!("{name}.ior"));
        std::fs::write(file, ior + "\n").expect("written");
        serve(port(node), name)
    });
    let folder = Path::new(QUORBA).parent().expect("a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let blocks = blocks(&page);
    assert!(!blocks.is_empty());
    for block in blocks {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", block]).current_dir(cluster.folder.path()).env("PATH", &path);
        let output = shell.output().expect("a shell");
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{block}: {out}{err}\n{}", cluster.told());
    }
    for node in 0..2 {
        assert_eq!(cluster.group_at(node, "bank")["members"][node]["state"], "in");
    }
    // The key is that of the first member.
    assert!(cluster.ok(&["ior", "make", "bank", "--corbaloc"]).ends_with("/QRB/bank/east\n"));
    servers.into_iter().for_each(quorba_orb::RunningServer::stop);
}
