//! Calls whose replies are looked for now and then.

use super::*;

fn client_of(server: &Scripted) -> Client {
    Client::new(&Reference::direct(server.address, b"object"), ClientOptions::default())
}

/// Looks until there is a reply, or none can come.
fn reply(client: &mut Client) -> Result<u32, SystemException> {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "it comes");
        if let Some(answer) = client.look_for_reply(Duration::from_millis(1)) {
            let answer = answer?;
            let mut reader = quorba_giop::cdr::Reader::at(
                answer.message.bytes(),
                answer.offset,
                answer.message.endian(),
            );
            return Ok(reader.read_u32("number").expect("a number"));
        }
    }
}

#[test]
fn nobody_waits_for_a_reply_that_is_looked_for_now_and_then() {
    let quiet = Duration::from_millis(200);
    let server = scripted(&[Act::ReturnAfterQuiet(quiet, 7), Act::Return(8), Act::Return(9)]);
    let mut client = client_of(&server);
    for expected in [7, 8] {
        client.call_later("pull", &|_| {}).expect("sent");
        assert!(client.is_called());
        if expected == 7 {
            assert!(client.look_for_reply(Duration::ZERO).is_none(), "it has not come");
        }
        assert_eq!(reply(&mut client), Ok(expected));
        assert!(!client.is_called());
    }
    // The connection is used on.
    let answer = client.call("more", |_| {}).expect("answered");
    assert_eq!(answer.results().read_u32("number").expect("a number"), 9);
}

#[test]
fn what_became_of_a_call_whose_connection_is_lost_is_said() {
    for (act, kind, completed) in [
        (Act::Drop, ExceptionKind::CommFailure, Completion::Maybe),
        (Act::CloseConnection, ExceptionKind::Transient, Completion::No),
        (
            Act::Raise(ExceptionKind::NoImplement, Completion::No),
            ExceptionKind::NoImplement,
            Completion::No,
        ),
    ] {
        let server = scripted(&[act, Act::Return(3)]);
        let mut client = client_of(&server);
        client.call_later("pull", &|_| {}).expect("sent");
        let raised = reply(&mut client).expect_err("no answer");
        assert_eq!((raised.kind, raised.completed), (kind, completed));
        client.call_later("pull", &|_| {}).expect("sent anew");
        assert_eq!(reply(&mut client), Ok(3));
    }
}

#[test]
fn a_forward_is_followed_by_the_next_call() {
    let there = scripted(&[Act::Return(5)]);
    let here = scripted(&[Act::Forward(there.address)]);
    let mut client = client_of(&here);
    client.call_later("pull", &|_| {}).expect("sent");
    let raised = reply(&mut client).expect_err("it is somewhere else");
    assert_eq!((raised.kind, raised.completed), (ExceptionKind::Transient, Completion::No));
    client.call_later("pull", &|_| {}).expect("sent there");
    assert_eq!(reply(&mut client), Ok(5));
}

#[test]
fn another_call_gives_it_up() {
    let server = scripted(&[Act::Silence, Act::Return(4)]);
    let mut client = client_of(&server);
    client.call_later("pull", &|_| {}).expect("sent");
    let answer = client.call("more", |_| {}).expect("answered");
    assert_eq!(answer.results().read_u32("number").expect("a number"), 4);
    assert!(!client.is_called());
}
