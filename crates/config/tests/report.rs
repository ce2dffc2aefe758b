//! What is said of a wrong domain file, word for word: one golden rendering per kind of error.
//!
//! The renderings are reviewed as prose. After a change: `INSTA_UPDATE=always cargo test`.

use std::path::Path;

use quorba_config::{Checked, DomainKey, KeyError, check_text};

const GOOD: &str = r#"[domain]
id = "plant-a"
key_file = "domain.key"
[node.n1]
host = "10.0.0.1"
[node.n2]
host = "10.0.0.2"
[node.n3]
host = "10.0.0.3"
[group.bank]
listen = 5000
members = ["n1", "n2", "n3"]
server = ["/usr/bin/bank", "-ORBendPoint", "giop:tcp:127.0.0.1:{port}"]
state_object = "bank"
"#;

fn check(text: &str) -> Checked {
    check_text(Path::new("quorba.toml"), text, |_| Ok(vec![DomainKey::from_bytes([7; 32])]))
}

/// The report on the good file in which `from` was replaced by `to`.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the good file has {from:?}");
    let checked = check(&GOOD.replacen(from, to, 1));
    let errors = checked.report.error_count();
    assert_eq!(checked.domain.is_none(), errors > 0, "a domain exactly if there is no error");
    checked.report.render(false)
}

/// The report on the good file with `lines` at its end.
fn and(lines: &str) -> String {
    let checked = check(&format!("{GOOD}{lines}"));
    checked.report.render(false)
}

macro_rules! golden {
    ($($name:ident: $rendered:expr;)*) => {$(
        #[test]
        fn $name() {
            let rendered: String = $rendered;
            assert!(rendered.contains("QB-CFG-") || stringify!($name) == "nothing_is_wrong");
            insta::assert_snapshot!(stringify!($name), rendered);
        }
    )*};
}

golden! {
    nothing_is_wrong: check(GOOD).report.render(false);

    empty_file: check("").report.render(false);
    syntax_errors: with("id = \"plant-a\"", "id = \"plant-a");
    table_twice: and("[node.n1]\nhost = \"10.0.0.9\"\n");
    unknown_key_meant: and("stlye = \"active\"\n");
    unknown_key_lists_the_known: with("key_file", "colour = 3\nkey_file");
    unknown_table_meant: and("[limit]\nconnections = 5\n");
    missing_keys: with("listen = 5000\nmembers = [\"n1\", \"n2\", \"n3\"]\n", "");
    missing_host: with("host = \"10.0.0.2\"\n", "");
    wrong_types: with(
        "listen = 5000\nmembers = [\"n1\", \"n2\", \"n3\"]",
        "listen = \"5000\"\nmembers = \"n1\"\nack = true\nrestart_backoff_ms = 1.5"
    );
    out_of_range: with("listen = 5000", "listen = 70000\nserver_reply_ms = -1");
    abandoned_too_soon: with("listen = 5000", "listen = 5000\nabandon_ms = 99");
    abandoned_before_it_is_late: with(
        "listen = 5000",
        "listen = 5000\nserver_reply_ms = 2000\nabandon_ms = 1000"
    );
    number_far_out_of_range: with("listen = 5000", "listen = 99999999999999999999999999999999999");
    unknown_value: with("listen = 5000", "listen = 5000\nack = \"majorty\"");
    concurrency_unknown: with("listen = 5000", "listen = 5000\nconcurrency = \"pipelned\"");
    readonly_wrong: with(
        "listen = 5000",
        "listen = 5000\nreadonly = [\"get_*\", \"get balance\"]\nreadonly_consistency = \"strong\""
    );
    clients_and_tls_wrong: with(
        "listen = 5000",
        "listen = 5000\nclients = [\"10.0.0.0/33\", \"alice\", { operations = [\"get x\"] }]\n\
         tls = { listen = 5000, certificate = \"a.pem\", client_certificates = \"optional\" }\n\
         state_operations = [\"getstate\"]"
    );
    tls_port_is_taken: with(
        "listen = 5000",
        "listen = 5000\ntls = { listen = 5000, certificate = \"a.pem\", key = \"a.key\" }"
    );
    readonly_idle: with("listen = 5000", "listen = 5000\nreadonly_consistency = \"sequential\"");
    calls_may_overlap: with(
        "listen = 5000",
        "listen = 5000\nconcurrency = \"pipelined\""
    );
    replier_is_no_member: with(
        "members = [\"n1\", \"n2\", \"n3\"]",
        "members = [\"n1\", \"n2\"]\nreplier = \"n3\""
    );
    passive_without_a_state: with("state_object = \"bank\"", "style = \"warm-passive\"");
    replay_without_what_it_needs: with("state_object = \"bank\"",
        "style = \"warm-passive\"\nrecovery = \"replay\"\nstate_object = \"bank\"");
    application_with_what_needs_states: with("state_object = \"bank\"",
        "style = \"active-with-voting\"\nrecovery = \"application\"\ndurable = true\n\
        state_object = \"bank\"\non_total_loss = \"stop\"\nreplay_bytes = 4096");
    application_passive: with("state_object = \"bank\"",
        "style = \"warm-passive\"\nrecovery = \"application\"");
    durable_without_what_it_needs: check(&GOOD.replace("state_object = \"bank\"",
        "durable = true\nreadonly = [\"get_*\"]\non_total_loss = \"fresh\"")).report.render(false);
    cold_without_a_command: and("[group.cold]\nlisten = 5001\nmembers = [\"n1\"]\n\
        connect = \"127.0.0.1:6000\"\nstyle = \"cold-passive\"\nstate_object = \"s\"\n\
        leader = \"n2\"\ncheckpoint_ms = 0\n");
    multicast_unusable: and("[ring]\nmulticast = \"10.0.0.1:4701\"\n");
    engine_unknown: and("[ring]\nengine = \"corosink\"\n");
    corosync_has_no_safe_delivery: check(
        &format!("{GOOD}ack = \"safe\"\n[ring]\nengine = \"corosync\"\n")
    ).report.render(false);
    corosync_has_small_messages: and(
        "[ring]\nengine = \"corosync\"\n[limits]\nmessage_bytes = 2000000\n"
    );
    corosync_has_small_tables: {
        let mut text = format!("{GOOD}[ring]\nengine = \"corosync\"\n");
        for index in 4..=40 {
            text += &format!("[node.n{index}]\nhost = \"10.0.0.{index}\"\n");
        }
        for index in 0..1000 {
            let listen = 6000 + index;
            text += &format!("[group.g{index}]\nlisten = {listen}\n");
            text += "members = [\"n1\", \"n2\"]\n";
            let servers = "n1 = \"10.0.1.1:6000\", n2 = \"10.0.1.2:6000\"";
            text += &format!("connect = {{ {} }}\n", servers.replace("6000", &listen.to_string()));
        }
        let rendered = check(&text).report.render(false);
        // Warnings about the groups follow.
        rendered.lines().take(3).collect::<Vec<_>>().join("\n")
    };
    bad_names: with("[node.n2]", "[node.\"n 2/../x\"]");
    bad_domain_id: with("plant-a", "-plant/a");
    bad_addresses: with(
        "host = \"10.0.0.2\"",
        "host = \"0.0.0.0\"\nbind = \"eth0\"\nadmin = \"10.0.0.2:4780\""
    );
    host_with_a_port: with("host = \"10.0.0.2\"", "host = \"10.0.0.2:4700\"");
    admin_without_a_port: with("host = \"10.0.0.2\"", "host = \"10.0.0.2\"\nadmin = \"127.0.0.1\"");
    unknown_placeholder: with("{port}", "{prot}");
    unbalanced_placeholder: with("{port}", "{port");
    member_is_no_node: with("\"n3\"]", "\"n4\"]");
    member_twice: with("\"n3\"]", "\"n1\"]");
    no_members: with("[\"n1\", \"n2\", \"n3\"]", "[]");
    groups_share_a_port: and(
        "[group.echo]\nlisten = 5000\nmembers = [\"n1\"]\nconnect = \"10.0.0.1:6000\"\n"
    );
    nodes_of_one_host_share_ports: with("10.0.0.2", "10.0.0.1");
    gateway_meets_ring_port: with("listen = 5000", "listen = 4700");
    gateway_port_too_high: with(
        "host = \"10.0.0.2\"",
        "host = \"10.0.0.2\"\ngateway_port_offset = 65000"
    );
    state_dirs_shared: with(
        "host = \"10.0.0.2\"",
        "host = \"10.0.0.1\"\nring_port = 4701\ngateway_port_offset = 1\n\
         state_dir = \"quorba-state/n1\""
    );
    no_backend: with(
        "server = [\"/usr/bin/bank\", \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\"]\n",
        ""
    );
    both_backends: and("connect = \"10.0.0.9:6000\"\n");
    server_without_its_port: with("{port}", "6000");
    empty_server: with(
        "[\"/usr/bin/bank\", \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\"]",
        "[]"
    );
    connect_for_some_members: with(
        "server = [\"/usr/bin/bank\", \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\"]",
        "connect = { n1 = \"10.0.0.9:6000\", n5 = \"10.0.0.9:6001\" }"
    );
    connect_shares_a_server: with(
        "server = [\"/usr/bin/bank\", \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\"]",
        "connect = \"10.0.0.9:6000\""
    );
    connect_unusable: with(
        "server = [\"/usr/bin/bank\", \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\"]",
        "connect = { n1 = \"10.0.0.9\", n2 = \"::1:6000\", n3 = \"10.0.0.9:0\" }\ncwd = \"/\""
    );
    object_key_unusable: with("state_object = \"bank\"", "state_object = \"ba%4\"");
    type_id_unusable: and("type_id = \"Bank::Ledger\"\n");
    environment_unusable: and("env = { \"A=B\" = \"x\", C = \"{prt}\", D = 5 }\n");
    too_long: with("plant-a", &"x".repeat(5000));
    limits_contradict: and("[limits]\nmessage_bytes = 3000000\nbuffered_bytes = 2000000\n");
    the_ring_has_messages_of_16_mib: and("[limits]\nmessage_bytes = 200000000\n");

    two_nodes: check(
        &GOOD.replace("[node.n3]\nhost = \"10.0.0.3\"\n", "").replace(", \"n3\"", "")
    ).report.render(false);
    loopback_among_others: with("10.0.0.2", "127.0.0.1");
    one_member: with("[\"n1\", \"n2\", \"n3\"]", "[\"n1\"]");
    no_state_object: with("state_object = \"bank\"\n", "");

    everything_at_once: check(
        "[domain]\nid = \"a b\"\nkeyfile = \"x\"\n[ring]\nencrypt = \"yes\"\n[node.n1]\n\
         hots = \"h\"\n[group.bank]\nlisten = 0\nmembers = [\"n2\"]\nstyle = \"activ\"\n"
    ).report.render(false);
}

fn key_report(error: KeyError) -> String {
    let checked = check_text(Path::new("/etc/quorba/quorba.toml"), GOOD, |file| {
        assert_eq!(file, Path::new("/etc/quorba/domain.key"), "relative to the domain file");
        Err(error)
    });
    checked.report.render(false)
}

golden! {
    key_missing: key_report(KeyError::Missing);
    key_unreadable: key_report(KeyError::Unreadable { reason: "permission denied".to_owned() });
    key_too_open: key_report(KeyError::TooOpen { mode: 0o644 });
    key_malformed: key_report(KeyError::Malformed { found: "63 characters".to_owned() });
    no_such_file: {
        let checked = quorba_config::check(Path::new("/nonexistent/quorba.toml"));
        checked.report.render(false)
    };
}

#[test]
fn problems_carry_line_and_column() {
    let checked = check(&GOOD.replace("listen", "listne"));
    let problem = &checked.report.problems()[0];
    assert_eq!((problem.line, problem.column), (10, 8), "the table that lacks `listen`");
    let problem = &checked.report.problems()[1];
    assert_eq!((problem.line, problem.column), (11, 1), "the misspelt key");
}
