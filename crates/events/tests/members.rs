//! Members of one service: what all of them know of what one decides, and what wakes their drivers.

use quorba_corba::giop::{Completion, ExceptionKind, SystemException};
use quorba_corba::{Any, Home, Local, Object};
use quorba_events::{DECISIONS_KEY, Decision, EventService, Outcome, Outgoing, SERVICE_KEY};
use quorba_idl::cos_event_channel_admin::{
    ConsumerAdminStub, ProxyPullConsumerStub, ProxyPushConsumerStub, ProxyPushSupplierStub,
    SupplierAdminStub,
};
use quorba_idl::quorba_events::{ChannelsStub, DecisionsStub};
use quorba_idl::rtec_event_channel_admin as rtec;

/// 100 ns in a millisecond.
const MS: u64 = 10_000;

fn home() -> Home {
    Home { addresses: vec![("here".to_owned(), 2812)], prefix: Vec::new() }
}

fn key(object: &Object) -> Vec<u8> {
    home().key_of(object).expect("an object of the service")
}

/// Members that are called alike; the first one leads.
struct Members(Vec<EventService>);

impl Members {
    fn new(count: usize, channels: &[(&str, &str)]) -> Self {
        let mut members = Self((0..count).map(|_| EventService::new(home())).collect());
        members.0[0].lead();
        for (name, settings) in channels {
            let made = members.call(SERVICE_KEY.as_bytes(), |it| {
                ChannelsStub(it).create(&(*name).to_owned(), &(*settings).to_owned())
            });
            made.expect("it is made");
        }
        members
    }

    /// What the first one answers.
    fn call<R>(&mut self, key: &[u8], call: impl Fn(&mut Local<'_>) -> R) -> R {
        let answers = self.0.iter_mut().map(|member| call(&mut Local::new(member, key)));
        let mut answers: Vec<R> = answers.collect();
        answers.remove(0)
    }

    fn consumer(&mut self, channel: &str) {
        let admin = format!("Events/{channel}/consumers");
        let proxy = self.call(admin.as_bytes(), |it| ConsumerAdminStub(it).obtain_push_supplier());
        let proxy = key(&proxy.expect("a proxy"));
        let peer = home().object("IDL:peer:1.0", b"peer");
        self.call(&proxy, |it| ProxyPushSupplierStub(it).connect_push_consumer(&peer))
            .expect("connected");
    }

    fn push(&mut self, channel: &str) {
        let admin = format!("Events/{channel}/suppliers");
        let proxy = self.call(admin.as_bytes(), |it| SupplierAdminStub(it).obtain_push_consumer());
        let proxy = key(&proxy.expect("a proxy"));
        self.call(&proxy, |it| ProxyPushConsumerStub(it).connect_push_supplier(&Object::nil()))
            .expect("connected");
        let data = Any::new(&1_u32).expect("a value");
        let _ = self.call(&proxy, |it| ProxyPushConsumerStub(it).push(&data));
    }

    /// What all of them are told that the first one has decided.
    fn decide(&mut self) {
        while let Some((channel, outgoing)) = self.0[0].poll() {
            if let Outgoing::Propose(proposal) = outgoing {
                let decision = Decision::Proposal(channel, proposal);
                self.call(DECISIONS_KEY.as_bytes(), |it| decision.call(it)).expect("ordered");
            }
        }
    }

    /// How many each member has ended because they raised, and because they were gone.
    fn ended(&self) -> Vec<(u64, u64)> {
        let figures = self.0.iter().map(|member| member.figures().channels.remove(0));
        figures.map(|one| (one.ended_raises, one.ended_gone)).collect()
    }
}

fn raised(completed: Completion) -> Outcome {
    Outcome::of(&SystemException { kind: ExceptionKind::Unknown, minor: 0, completed })
}

#[test]
fn all_members_know_whether_a_consumer_raised_or_was_gone() {
    for (outcome, expected) in [(raised(Completion::No), (1, 0)), (Outcome::Failed, (0, 1))] {
        let settings = "full=back-pressure retry_ms=10 give_up_ms=100";
        let mut members = Members::new(3, &[("a", settings)]);
        members.consumer("a");
        members.push("a");
        for now in (0..20).map(|turn| turn * 10 * MS) {
            members.0.iter_mut().for_each(|member| member.tick(now));
            while let Some((name, push)) = members.0[0].poll_push() {
                members.0[0].pushed(&name, push.consumer, push.ticket, outcome);
            }
            members.decide();
        }
        assert_eq!(members.ended(), [expected; 3], "{outcome:?}");
        let ended = members.call(SERVICE_KEY.as_bytes(), |it| {
            ChannelsStub(it).ended(&"a".to_owned()).expect("a channel")
        });
        assert_eq!((ended.raising, ended.gone), expected);
    }
}

#[test]
fn what_older_members_have_decided_is_still_understood() {
    let mut members = Members::new(1, &[("a", "reliable=true")]);
    members.consumer("a");
    members.push("a");
    let name = "a".to_owned();
    let mut call = |proxy: u64, is_consumer: bool| {
        members.call(DECISIONS_KEY.as_bytes(), |it| {
            let mut it = DecisionsStub(it);
            if is_consumer {
                it.end_consumer(&name, &proxy, &true)
            } else {
                it.end_supplier(&name, &proxy, &false)
            }
        })
    };
    for (proxy, is_consumer) in [(7, true), (1, true), (2, false)] {
        call(proxy, is_consumer).expect("what is no more is no error");
    }
    assert!(!members.0[0].has_proxy("a", 1) && !members.0[0].has_proxy("a", 2));
    let counts = members.0[0].channel("a").expect("a channel").end_counts();
    assert_eq!((counts.too_slow, counts.gone), (1, 1));
}

/// Who drives a service looks at what is to be done whenever a push has come: a supplier of another
/// channel that is not to be asked yet must not make it look.
#[test]
fn a_supplier_that_is_not_to_be_asked_yet_wakes_nobody() {
    let mut members = Members::new(1, &[("a", ""), ("b", "pull_ms=10"), ("nobody", "")]);
    members.consumer("a");
    members.consumer("b");
    let proxy = members
        .call(b"Events/nobody/suppliers", |it| SupplierAdminStub(it).obtain_pull_consumer())
        .expect("a proxy");
    let peer = home().object("IDL:peer:1.0", b"unwanted");
    members
        .call(&key(&proxy), |it| ProxyPullConsumerStub(it).connect_pull_supplier(&peer))
        .expect("connected");
    let proxy = members
        .call(b"Events/b/suppliers", |it| SupplierAdminStub(it).obtain_pull_consumer())
        .expect("a proxy");
    let peer = home().object("IDL:peer:1.0", b"peer");
    members
        .call(&key(&proxy), |it| ProxyPullConsumerStub(it).connect_pull_supplier(&peer))
        .expect("connected");
    let service = &mut members.0[0];
    let mut asked = 0;
    while let Some((name, outgoing)) = service.poll() {
        if let Outgoing::Pull { supplier, ticket, .. } = outgoing {
            service.pulled(&name, supplier, ticket, Ok(None));
            asked += 1;
        }
    }
    assert_eq!((asked, service.has_outgoing()), (1, false), "it has nothing");
    members.push("a");
    let service = &mut members.0[0];
    while service.poll().is_some() {}
    assert!(service.has_push() && !service.has_outgoing());
    assert_eq!(service.poll_timeout(), Some(10 * MS));
    service.tick(10 * MS);
    assert!(service.has_outgoing(), "its time has come");
    let next = service.poll().expect("something");
    assert!(next.0 == "b" && matches!(next.1, Outgoing::Pull { .. }), "{next:?}");
}

#[test]
fn a_member_that_does_not_lead_has_nothing_to_do_for_a_changed_subscription() {
    let mut members = Members::new(2, &[("a", ""), ("b", "reliable=true")]);
    for name in ["a", "b"] {
        let admin = format!("Events/{name}/rtec");
        let observer = home().object("IDL:peer:1.0", b"observer");
        members
            .call(admin.as_bytes(), |it| rtec::EventChannelStub(it).append_observer(&observer))
            .expect("appended");
        members.consumer(name);
    }
    let told: Vec<bool> = members.0.iter().map(EventService::has_outgoing).collect();
    assert_eq!(told, [true, false]);
    members.0[1].lead();
    assert!(members.0[1].has_outgoing(), "now it tells observers");
}
