//! The servers behind a group's members: `server` with `env` and `cwd`, or `connect`.
//!
//! What it is not: the addresses of servers that run already; `connect.rs` reads those.

use toml::de::DeValue;

use super::MESSAGE_BYTES_COROSYNC_MAX;
use super::channels;
use super::connect::{self, Found};
use super::scope::Scope;
use super::service;
use crate::codes::Code;
use crate::domain::{Backend, Engine, ServerCommand};
use crate::problem::Problem;
use crate::service::Service;
use crate::suggest::nearest;
use crate::template::{PLACEHOLDERS, Placeholder, Template, TemplateError};
use crate::walk::{At, Section, Value, shortened};
use quorba_base::NodeSet;
use quorba_base::channel::PUSHES_AT_ONCE_USUAL;

/// Octets of one event that a reply carries there with all that is around it: an event of TAO is
/// given with its type to who pulls by the standard's interface.
const EVENT_BYTES_COROSYNC: u32 = MESSAGE_BYTES_COROSYNC_MAX - (20 << 10);

/// The servers, and what references of servers that run already say of the group's object.
pub(super) fn read(section: &Section<'_>, scope: &Scope<'_>, members: NodeSet) -> (Backend, Found) {
    let server = section.texts("server");
    let connect = section.value("connect");
    let env = read_env(section);
    let cwd = section.text("cwd").and_then(|at| template(section, "cwd", &at));
    if let Some(value) = section.value(service::KEY) {
        let server = of_service(section, value, (env, cwd), scope);
        return (Backend::Start(server), Found::default());
    }
    match (section.value("server"), connect) {
        (Some(_), None) => {
            let server = server.unwrap_or(At { value: Vec::new(), span: section.header.clone() });
            (Backend::Start(read_command(section, server, env, cwd)), Found::default())
        }
        (None, Some(value)) => {
            for key in ["env", "cwd"] {
                if let Some(idle) = section.value(key) {
                    let message = format!("`{key}` has no effect without `server`");
                    section.problems.add(Problem::at(Code::SilentSetting, idle.span(), message));
                }
            }
            let (servers, found) = connect::read(section, value, scope, members);
            (Backend::Connect(servers), found)
        }
        (Some(first), Some(second)) => {
            let message = format!("{} has both `server` and `connect`", section.title);
            let problem = Problem::at(Code::Backend, second.span(), message);
            let problem = problem.related(first.span(), "either this");
            section.problems.add(problem.label("or this"));
            (Backend::Connect(Vec::new()), Found::default())
        }
        (None, None) => {
            let message = format!("{} has no server", section.title);
            let help = "server = [\"program\", \"...\"] starts one at each member; \
                        connect = { n1 = \"host:port\" } uses those that run already";
            let problem = Problem::at(Code::Backend, section.header.clone(), message);
            section.problems.add(problem.label("needs `server` or `connect`").help(help));
            (Backend::Connect(Vec::new()), Found::default())
        }
    }
}

/// The server of a service, and nobody else's.
fn of_service(
    section: &Section<'_>,
    value: &Value<'_>,
    (env, cwd): (Vec<(String, Template)>, Option<Template>),
    scope: &Scope<'_>,
) -> ServerCommand {
    for key in ["server", "connect"] {
        if let Some(other) = section.value(key) {
            let message = format!("{} has both `service` and `{key}`", section.title);
            let problem = Problem::at(Code::Backend, other.span(), message);
            section.problems.add(problem.related(value.span(), "either this").label("or this"));
        }
    }
    let Some(service) = service::of(section) else {
        return ServerCommand { command: Vec::new(), env, cwd };
    };
    let name = service.as_str();
    if section.title != format!("[group.{name}]") && section.title != format!("[service.{name}]") {
        let message = format!("{} is the service {name} under another name", section.title);
        let problem = Problem::at(Code::Conflict, value.span(), message);
        section.problems.add(problem.help(format!("write it as [service.{name}]")));
    }
    let mut command = service.command();
    if service == Service::Events {
        channels::check_style(section);
        let rules = channels::read_all(section);
        let bounds = channels::read_bounds(section, scope.state_bytes, &rules);
        let (all, reliable) = (bounds.channels_bytes, bounds.reliable_bytes);
        let bounds = ["--channels-bytes", &all.to_string(), "--reliable-bytes"];
        let mut words: Vec<String> = bounds.map(str::to_owned).into();
        words.push(reliable.to_string());
        if scope.engine == Engine::Corosync {
            words.extend(["--event-bytes".to_owned(), EVENT_BYTES_COROSYNC.to_string()]);
        }
        let priority = channels::read_priority(section);
        if priority > 0 {
            words.extend(["--real-time-priority".to_owned(), priority.to_string()]);
        }
        let pushes = channels::read_pushes(section);
        if pushes != PUSHES_AT_ONCE_USUAL {
            words.extend(["--pushes-at-once".to_owned(), pushes.to_string()]);
        }
        for (name, rule) in rules {
            words.extend(["--channel".to_owned(), format!("{name} {rule}")]);
        }
        command.extend(words.iter().filter_map(|word| Template::parse(word).ok()));
    }
    ServerCommand { command, env, cwd }
}

fn read_command(
    section: &Section<'_>,
    server: At<Vec<At<&str>>>,
    env: Vec<(String, Template)>,
    cwd: Option<Template>,
) -> ServerCommand {
    let arguments = server.value.len();
    let command: Vec<Template> =
        server.value.iter().filter_map(|at| template(section, "server", at)).collect();
    let told = command.iter().chain(env.iter().map(|(_, value)| value));
    let is_place =
        |template: &Template| [Placeholder::Port, Placeholder::Socket].map(|it| template.uses(it));
    let told = told.into_iter().any(|template| is_place(template).contains(&true));
    // An argument that could not be read may be the one with {port}.
    if !told && command.len() == arguments {
        let message = format!("{} never tells its server where to listen", section.title);
        let help = "{port} stands for a port: \"-ORBendPoint\", \"giop:tcp:127.0.0.1:{port}\" with \
                    omniORB, \"-DOAPort={port}\" with JacORB; {socket} for a socket's file: \
                    \"giop:unix:{socket}\"";
        section.problems.add(Problem::at(Code::Backend, server.span, message).help(help));
    }
    ServerCommand { command, env, cwd }
}

fn template(section: &Section<'_>, key: &str, at: &At<&str>) -> Option<Template> {
    let error = match Template::parse(at.value) {
        Ok(template) => return Some(template),
        Err(error) => error,
    };
    let known = || PLACEHOLDERS.iter().map(|(name, _)| *name);
    let (message, help) = match &error {
        TemplateError::Unknown(name) => (
            format!("`{key}` has a placeholder {{{}}} that does not exist", shortened(name)),
            match nearest(name, known()) {
                Some(meant) => format!("did you mean {{{meant}}}?"),
                None => {
                    let names: Vec<String> = known().map(|name| format!("{{{name}}}")).collect();
                    format!("possible: {}; a brace itself is {{{{ or }}}}", names.join(" "))
                }
            },
        ),
        TemplateError::Unbalanced => (
            format!("`{key}` has a brace without its partner"),
            "a brace itself is written twice: {{ or }}".to_owned(),
        ),
    };
    section.problems.add(Problem::at(Code::BadPlaceholder, at.span.clone(), message).help(help));
    None
}

fn read_env(section: &Section<'_>) -> Vec<(String, Template)> {
    let Some(value) = section.value("env") else { return Vec::new() };
    let DeValue::Table(table) = value.get_ref() else {
        section.wrong_type("env", "a table { NAME = \"value\" }", value);
        return Vec::new();
    };
    let mut env = Vec::new();
    for (name, value) in table.iter() {
        let key = name.get_ref();
        if key.is_empty() || key.contains(['=', '\0']) {
            let message = format!("{:?} is no name of an environment variable", shortened(key));
            section.problems.add(Problem::at(Code::BadName, name.span(), message));
            continue;
        }
        // An empty value is common here, and means what it says.
        let empty = matches!(value.get_ref(), DeValue::String(text) if text.is_empty());
        let read = if empty {
            Template::parse("").ok()
        } else {
            section.as_text(key, value).and_then(|at| template(section, key, &at))
        };
        env.extend(read.map(|template| (key.to_string(), template)));
    }
    env
}
