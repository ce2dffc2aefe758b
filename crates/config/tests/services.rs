//! Services: groups of servers that Quorba brings itself.

mod common;

use std::path::Path;

use common::BEGINNING;
use quorba_base::policy::Style;
use quorba_config::{
    Backend, Checked, Code, Definition, Domain, GroupChange, KnownGroups, Service, read_group,
};

fn check(more: &str) -> Checked {
    common::check(&format!("{BEGINNING}{more}"))
}

fn domain(more: &str) -> Domain {
    common::domain(&format!("{BEGINNING}{more}"))
}

/// A group of somebody's own.
fn server(name: &str, listen: u16) -> String {
    format!(
        "[group.{name}]\nlisten = {listen}\nmembers = [\"n1\"]\nserver = [\"b\", \"{{port}}\"]\n"
    )
}

fn told(more: &str) -> Vec<(Code, String)> {
    let checked = check(more);
    assert!(checked.domain.is_none(), "{more} is right");
    let problems = checked.report.problems().iter();
    problems.map(|problem| (problem.code, problem.to_string())).collect()
}

#[test]
fn one_line_is_a_naming_service_on_all_nodes() {
    let domain = domain("[service.naming]\n");
    assert!(domain.warnings.is_empty(), "{:?}", domain.warnings);
    let group = domain.group("naming").expect("a group like any other");
    assert_eq!((group.service, group.style), (Some(Service::Naming), Style::Active));
    assert_eq!((group.members, group.durable), (domain.node_set(), true));
    assert_eq!((group.listen, group.port), (Some(2809), 2809));
    assert_eq!(group.object_key.as_deref(), Some(&b"NameService"[..]));
    assert_eq!(group.state_object.as_deref(), Some(&b"NameService/state"[..]));
    assert!(group.readonly.contains(&"resolve".to_owned()));
    let Backend::Start(server) = &group.backend else { panic!("its node starts it") };
    let command: Vec<String> = server.command.iter().map(ToString::to_string).collect();
    assert_eq!(command[..3], ["{quorba}", "serve", "naming"]);
}

#[test]
fn what_the_file_says_counts_more() {
    let domain = domain(
        "[service.naming]\nlisten = 2900\nmembers = [\"n3\", \"n1\"]\ndurable = false\n\
         style = \"warm-passive\"\nreadonly = []\n[service.naming.env]\nA = \"1\"\n",
    );
    let group = domain.group("naming").expect("the group");
    assert_eq!((group.style, group.durable), (Style::WarmPassive, false));
    assert_eq!((group.listen, group.members.len()), (Some(2900), 2));
    assert!(group.readonly.is_empty());
    let Backend::Start(server) = &group.backend else { panic!("its node starts it") };
    assert_eq!(server.env.len(), 1);
}

#[test]
fn its_definition_says_everything_and_is_read_again_as_the_same() {
    let domain = domain(&format!("[service.naming]\n{}", server("bank", 5000)));
    let names: Vec<&str> = domain.definitions().iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["bank", "naming"]);
    let definition = &domain.definitions()[1];
    let keys: Vec<String> = definition.entries().into_iter().map(|(key, _)| key).collect();
    let said = ["durable", "listen", "members", "object_key", "readonly", "service", "style"];
    assert!(said.iter().all(|key| keys.iter().any(|known| known == key)), "{keys:?}");
    let again = Definition::parse(&definition.text).expect("a definition");
    assert_eq!(again, *definition);
    let read = read_group(&domain, &definition.text, &KnownGroups::default());
    assert_eq!(read.expect("a group"), *domain.group("naming").expect("the group"));
}

#[test]
fn a_definition_is_found_in_a_whole_file_and_in_a_part_of_one() {
    let path = Path::new("f.toml");
    let whole = format!("{BEGINNING}[service.naming]\n");
    let found = Definition::find("naming", path, &whole).expect("it is there");
    assert_eq!(found, domain("[service.naming]\n").definitions()[0]);
    let text = "[service.naming]\nmembers = [\"n1\", \"n2\", \"n3\"]\n";
    assert_eq!(Definition::parse(text).expect("a definition"), found);
    let report = Definition::find("bank", path, &whole).expect_err("no such group");
    assert!(report.problems()[0].to_string().contains("[group.bank]"));
}

#[test]
fn a_group_cannot_have_the_name_of_a_service_that_the_file_has() {
    let group = server("naming", 5000);
    let told = told(&format!("{group}[service.naming]\n"));
    assert!(told[0].1.contains("[group.naming] and [service.naming] are one group"), "{told:?}");
    domain(&group);
}

#[test]
fn what_is_the_services_own_is_refused_by_name() {
    let one = told("[service.naming]\nserver = [\"x\", \"{port}\"]\n");
    assert!(one[0].1.contains("[service.naming] has a `server` of its own"), "{one:?}");
    let two = told("[service.name]\n");
    assert_eq!(two[0].0, Code::UnknownKey);
    assert!(two[0].1.contains("there is no service name"), "{two:?}");
    let three = told("[service.naming]\nlistn = 1\n");
    assert!(three[0].1.contains("[service.naming] has no key `listn`"), "{three:?}");
    let members = "members = [\"n1\"]\n";
    let four = told(&format!("[group.names]\nlisten = 1\n{members}service = \"naming\"\n"));
    assert!(four[0].1.contains("the service naming under another name"), "{four:?}");
    let five = told(&format!("[group.naming]\nlisten = 1\n{members}service = \"nming\"\n"));
    assert_eq!(five[0].0, Code::UnknownValue, "{five:?}");
    let six = told(&format!("[service.naming]\n{}", server("a", 2809)));
    assert!(six[0].1.contains("both listen on 2809"), "{six:?}");
}

#[test]
fn a_group_does_not_become_a_service_while_it_runs() {
    let group = server("naming", 2809);
    let (old, new) = (domain(&group), domain("[service.naming]\n"));
    let change = GroupChange::between(&old.definitions()[0], &new.definitions()[0]);
    let effects: Vec<_> = change.keys.iter().filter(|key| key.key == "service").collect();
    assert_eq!(effects[0].effect, quorba_config::Effect::Recreate);
}

#[test]
fn channels_of_the_event_service_are_told_to_its_servers() {
    let text = "[service.events]\nlisten = 2900\n[service.events.channel.plain]\n\
                [service.events.channel.sure]\nreliable = true\nqueue_events = 10\n";
    let domain = domain(text);
    let group = domain.group("events").expect("a group");
    assert_eq!((group.style, group.durable, group.listen), (Style::SemiActive, true, Some(2900)));
    let Backend::Start(server) = &group.backend else { panic!("its node starts it") };
    let command: Vec<String> = server.command.iter().map(ToString::to_string).collect();
    let channels: Vec<&String> = command
        .iter()
        .zip(&command[1..])
        .filter(|(one, _)| *one == "--channel")
        .map(|(_, two)| two)
        .collect();
    assert_eq!(channels.len(), 2, "{command:?}");
    assert!(channels[0].starts_with("plain reliable=false full=drop-oldest "), "{channels:?}");
    let sure = channels[1];
    assert!(sure.starts_with("sure reliable=true full=back-pressure "), "{sure}");
    assert!(sure.contains(" queue_events=10 "), "{sure}");
}

#[test]
fn what_an_rt_info_means_is_told_to_the_servers_of_the_event_service() {
    let command = |text: &str| {
        let domain = domain(&format!("[service.events]\n{text}"));
        let Backend::Start(server) = &domain.groups[0].backend else { panic!("it is started") };
        server.command.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let said = command(
        "pushes_at_once = 1\n[service.events.channel.a]\nstrategy = \"least-laxity\"\n\
         rt_info.1 = { priority = 5, deadline_us = 900, execution_us = 20, critical = true }\n\
         [service.events.channel.a.rt_info.0]\ndeadline_us = 7\n",
    );
    assert!(said.contains(" --pushes-at-once 1 "), "{said}");
    assert!(said.contains(" rt_info.0=priority:1000000,deadline_us:7 rt_info.1="), "{said}");
    let one = " rt_info.1=priority:5,deadline_us:900,execution_us:20,critical:true";
    assert!(said.contains(one), "{said}");
    assert!(!command("").contains("--pushes-at-once"));
    let channel = "[service.events]\n[service.events.channel.a]\n";
    let wrong = |text: &str| told(&format!("{channel}{text}\n"));
    let problem = wrong("rt_info.urgent = {}");
    assert_eq!(problem[0].0, Code::BadName, "{problem:?}");
    assert!(problem[0].1.contains("[service.events.channel.a.rt_info.urgent]"), "{problem:?}");
    let problem = wrong("rt_info.1 = { deadline_us = 5, execution_us = 6 }");
    assert_eq!(problem[0].0, Code::Conflict, "{problem:?}");
    let problem = wrong("rt_info.1 = { priority = 1000001 }");
    assert!(problem[0].1.contains("`priority` is out of range"), "{problem:?}");
    let problem = wrong("rt_info.1 = { urgency = 1 }");
    assert_eq!(problem[0].0, Code::UnknownKey, "{problem:?}");
    let many: String = (0..65).map(|number| format!("rt_info.{number} = {{}}\n")).collect();
    assert_eq!(wrong(&many)[0].0, Code::TooMany);
    let problem = told("[service.events]\npushes_at_once = 0\n");
    assert!(problem[0].1.contains("`pushes_at_once` is out of range"), "{problem:?}");
}

/// An event that can be pushed can be pulled.
#[test]
fn events_are_no_larger_than_what_the_order_carries() {
    let command = |text: &str| {
        let domain = domain(&format!("{text}[service.events]\ndurable = false\n"));
        let Backend::Start(server) = &domain.groups[0].backend else { panic!("it is started") };
        server.command.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert!(!command("").contains("--event-bytes"));
    let said = command("[ring]\nengine = \"corosync\"\n");
    assert!(said.contains(" --event-bytes 879520"), "{said}");
}

#[test]
fn threads_of_the_event_service_have_the_priority_that_the_file_says() {
    let command = |text: &str| {
        let domain = domain(&format!("[service.events]\n{text}"));
        let Backend::Start(server) = &domain.groups[0].backend else { panic!("it is started") };
        server.command.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let wants = |text: &str| command(text).contains("--real-time-priority");
    assert!(command("real_time_priority = 42\n").contains(" --real-time-priority 42"));
    assert!(!wants("") && !wants("real_time_priority = 0\n"));
    let wrong = told("[service.events]\nreal_time_priority = 100\n");
    assert!(wrong[0].1.contains("`real_time_priority` is out of range"), "{wrong:?}");
    let wrong = told("[service.events]\nreal_time_priority = \"high\"\n");
    assert!(wrong[0].1.contains("real_time_priority"), "{wrong:?}");
    let wrong = told("[service.naming]\nreal_time_priority = 1\n");
    assert!(wrong[0].1.contains("has no key `real_time_priority`"), "{wrong:?}");
}

#[test]
fn what_a_channel_cannot_be_is_told_where_it_stands() {
    let one = |text: &str| told(&format!("[service.events]\n{text}"));
    let channel = |keys: &str| one(&format!("[service.events.channel.c]\n{keys}\n"));
    let wrong = channel("reliable = true\nfull = \"drop-oldest\"");
    assert!(wrong[0].1.contains("a reliable channel drops no event"), "{wrong:?}");
    let wrong = channel("batch = 0");
    assert!(wrong[0].1.contains("`batch` is out of range"), "{wrong:?}");
    let all: String = (0..9)
        .map(|it| format!("[service.events.channel.c{it}]\ntotal_bytes = 536870912\n"))
        .collect();
    let wrong = one(&all);
    assert!(wrong[0].1.contains("channels_bytes of [service.events]"), "{wrong:?}");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    domain(&format!("[service.events]\nchannels_bytes = 5000000000\n{all}"));
    let wrong = channel("reliable = true\ntotal_bytes = 500000000");
    assert!(wrong[0].1.contains("state_bytes of [limits]"), "{wrong:?}");
    let wrong = channel("ful = \"disconnect\"");
    assert!(wrong[0].1.contains("did you mean `full`"), "{wrong:?}");
    assert!(wrong[0].1.contains("[service.events.channel.c]"), "{wrong:?}");
    let wrong = one("style = \"warm-passive\"\n");
    assert!(wrong[0].1.contains("cannot have the style"), "{wrong:?}");
    let wrong = told("[service.naming]\n[service.naming.channel.c]\n");
    assert!(wrong[0].1.contains("has no key `channel`"), "{wrong:?}");
    let name = one("[service.events.channel.\"a/b\"]\n");
    assert!(name[0].1.contains("channel name"), "{name:?}");
}
