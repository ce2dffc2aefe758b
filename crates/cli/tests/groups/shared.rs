//! The port that groups share.

use std::time::Duration;

use quorba_giop::ExceptionKind;

use crate::cluster::{ALL, Cluster, bank};
use crate::stage::wire::{Answer, Wire};

const SOON: Duration = Duration::from_secs(20);

fn increment(wire: &mut Wire, group: &str, reference: &str) -> u64 {
    let key = format!("QRB/{group}/bank");
    let answer = wire.call(key.as_bytes(), "increment", SOON, |out| {
        out.write_string(reference.as_bytes());
    });
    let Answer::Reply(message) = &answer else { panic!("{group}: {answer}") };
    let Ok(quorba_giop::Body::Reply(reply)) = message.parse() else { panic!("no reply") };
    reply.reader().read_u64("counter").expect("a number")
}

#[test]
fn groups_are_called_over_one_connection_and_one_that_is_not_there_does_not_exist() {
    let cluster = Cluster::start(&bank("one", &ALL, ""));
    cluster.create("other", &bank("other", &["n2", "n3"], ""), &[]);
    cluster.wait_healthy();
    let mut wire = Wire::connect(cluster.gateway(0)).expect("it listens");
    for round in 1..=3 {
        let reference = format!("r{round}");
        assert_eq!(increment(&mut wire, "one", &reference), round);
        assert_eq!(increment(&mut wire, "other", &reference), round);
    }
    for key in [&b"QRB/nobody/bank"[..], b"QRB/", b"bank", b""] {
        let answer = wire.call(key, "counter", SOON, |_| {});
        let Answer::Raised(exception) = &answer else { panic!("{answer}") };
        assert_eq!(exception.kind, ExceptionKind::ObjectNotExist, "{answer}");
    }
    // One group's end is not that of a connection on which there are others.
    cluster.ok(&["group", "delete", "other", "--yes"]);
    let answer = wire.call(b"QRB/other/bank", "counter", SOON, |_| {});
    let Answer::Raised(exception) = &answer else { panic!("{answer}") };
    assert_eq!(exception.kind, ExceptionKind::ObjectNotExist, "{answer}");
    assert_eq!(increment(&mut wire, "one", "last"), 4);
    // A group that is made while the connection is there is reached over it.
    cluster.create("third", &bank("third", &ALL, ""), &[]);
    cluster.wait_healthy();
    assert_eq!(increment(&mut wire, "third", "first"), 1);
}
