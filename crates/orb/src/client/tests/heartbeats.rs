//! Heartbeats on the connection on which a reply is waited for.

use super::groups::of_group;
use super::*;

fn beating(repeat: Option<Repeat>) -> ClientOptions {
    let (interval, timeout) = (Duration::from_millis(20), Duration::from_secs(1));
    let heartbeat = Some(HeartbeatPolicy { interval, timeout });
    // No other limit ends a call.
    ClientOptions { heartbeat, repeat, call_timeout: None, ..ClientOptions::default() }
}

#[test]
fn a_client_asks_a_server_that_takes_its_time_and_waits_on() {
    let server = scripted(&[Act::ReturnAfterBeats(5, 1), Act::Return(2)]);
    let mut client = of_group(&[server.address], beating(None));
    assert_eq!((call(&mut client), call(&mut client)), (Ok(1), Ok(2)));
}

#[test]
fn a_server_that_does_not_answer_heartbeats_has_lost_the_call() {
    let (first, second) = (scripted(&[Act::Silence]), scripted(&[Act::Return(2)]));
    let mut client = of_group(&[first.address, second.address], beating(None));
    assert_eq!(call(&mut client), raised(ExceptionKind::CommFailure, 0, Completion::Maybe));
    assert_eq!(call(&mut client), Ok(2), "the next one goes elsewhere");
}

#[test]
fn a_call_with_an_identity_is_repeated_where_heartbeats_are_answered() {
    let first = scripted(&[Act::Silence]);
    let second = scripted(&[Act::ReturnAfterBeats(2, 2)]);
    let options = beating(Some(Repeat::new("test", 0)));
    let mut client = of_group(&[first.address, second.address], options);
    assert_eq!(call(&mut client), Ok(2));
    assert_eq!(first.asked().identity, second.asked().identity);
}

#[test]
fn who_does_not_say_that_heartbeats_are_answered_gets_none() {
    let server = scripted(&[Act::ReturnAfterQuiet(Duration::from_millis(300), 1)]);
    let mut client = client(&[server.address], beating(None));
    assert_eq!(call(&mut client), Ok(1));
}
