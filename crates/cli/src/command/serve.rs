//! `quorba serve`: the process of a service, as nodes start it for `[service.NAME]`.
//!
//! What it is not: for people, who write the table and start nodes. What a service does is in a
//! room of its own; here it gets its socket and the addresses that its references say.
//!
//! Invariant: nothing but what the command line says goes into a reply.

mod accusations;
mod alive;
mod events;
mod faults;
mod insist;
mod silence;
mod unanswered;

use std::env;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quorba_base::channel::{Bounds, ChannelRule, PUSHES_AT_ONCE_USUAL};
use quorba_config::{Service, Without};
use quorba_corba::{Home, Objects};
use quorba_events::EventService;
use quorba_giop::corbaloc::{self, Address};
use quorba_giop::{CodeSets, ExceptionKind};
use quorba_idl::quorba_events::Filed;
use quorba_manager::Manager;
use quorba_naming::{Clock, Limits, NamingService};
use quorba_notifier::Notifier;
use quorba_orb::{CallError, Client, ClientOptions, Reference, Server, ServerOptions};

pub(super) use self::insist::is_passing;
use crate::exit::Exit;
use crate::failure::{Failure, codes};

/// The longest state that a domain file allows, and what a message has besides.
const MESSAGE_BYTES_MAX: usize = (1 << 30) + (64 << 10);

/// Serve as one replica of a service
#[derive(Debug, Args)]
pub struct Serve {
    /// Which service
    #[arg(value_parser = service())]
    service: Service,

    /// Where the node calls it
    #[arg(long, value_name = "HOST:PORT")]
    listen: SocketAddr,

    /// What its references say: the gateways of its group
    #[arg(long, value_name = "HOST:PORT,...", value_parser = gateways)]
    publish: Gateways,

    /// The group's ordered time
    #[arg(long, value_name = "REF")]
    time: Option<String>,

    /// Where the service has groups made
    #[arg(long, value_name = "REF")]
    domain: Option<String>,

    /// Where the node tells what happens
    #[arg(long, value_name = "REF")]
    news: Option<String>,

    /// Where the node tells who leads
    #[arg(long, value_name = "REF")]
    leaders: Option<String>,

    /// Where the node takes figures; it stands in the environment, as others must not know it
    #[arg(long, value_name = "REF", env = "QUORBA_FIGURES", hide_env_values = true)]
    figures: Option<String>,

    /// A channel of the domain file, and its settings
    #[arg(long = "channel", value_name = "NAME KEY=VALUE...", value_parser = filed)]
    channels: Vec<Filed>,

    /// Octets that may wait in all channels together
    #[arg(long, value_name = "BYTES", default_value_t = Bounds::default().channels_bytes)]
    channels_bytes: u64,

    /// Octets that may wait in all reliable channels together
    #[arg(long, value_name = "BYTES", default_value_t = Bounds::default().reliable_bytes)]
    reliable_bytes: u64,

    /// Octets of one event, if that is less than usual
    #[arg(long, value_name = "BYTES", default_value_t = usize::MAX, hide_default_value = true)]
    event_bytes: usize,

    /// The real-time priority of threads that events wait for; 0: none
    #[arg(long, value_name = "PRIORITY", default_value_t = 0)]
    real_time_priority: u8,

    /// Pushes to consumers that are under way at a time
    #[arg(long, value_name = "COUNT", default_value_t = PUSHES_AT_ONCE_USUAL)]
    pushes_at_once: u32,

    /// The gateway of its own group on its node
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    gateway: String,

    /// The same for its own processes only, where a node has such a port; it stands in the
    /// environment, as others must not know it
    #[arg(long, value_name = "HOST:PORT", env = "QUORBA_OWN_GATEWAY", hide_env_values = true)]
    own_gateway: Option<String>,

    /// Its node
    #[arg(long, value_name = "NODE", default_value = "")]
    node: String,

    /// The group that it is itself
    #[arg(long, value_name = "GROUP", default_value = "")]
    group: String,
}

/// What the node says of the request that is being executed.
struct OrderedTime(Client);

impl Clock for OrderedTime {
    fn now(&mut self) -> Option<u64> {
        self.ask("_get_now")
    }
}

impl OrderedTime {
    /// Whose request it is.
    fn caller(&mut self) -> Option<u64> {
        self.ask("_get_caller").filter(|caller| *caller > 0)
    }

    fn ask(&mut self, what: &str) -> Option<u64> {
        let answer = match self.0.call(what, |_| {}) {
            Ok(answer) => answer.results().read_u64("value").map_err(|error| error.to_string()),
            // Outside of a request there is none, for no replica.
            Err(CallError::System(raised)) if raised.kind == ExceptionKind::BadInvOrder => {
                return None;
            }
            Err(error) => Err(error.to_string()),
        };
        // To go on without it would be to differ from the other replicas; a new process is given
        // their state.
        let answer = answer.unwrap_or_else(|error| {
            eprintln!("the node does not tell the ordered time: {error}");
            std::process::exit(1)
        });
        Some(answer)
    }
}

/// Hosts and ports.
#[derive(Clone, Debug)]
struct Gateways(Vec<(String, u16)>);

fn service() -> impl TypedValueParser<Value = Service> {
    let words = PossibleValuesParser::new(Service::WORDS.iter().map(|(word, _)| *word));
    words.try_map(|word| Service::from_word(&word).ok_or("there is no such service"))
}

/// Reads `h1:p1,h2:p2`, as `{gateways}` writes it; hosts are as in corbaloc.
fn gateways(text: &str) -> Result<Gateways, String> {
    // A corbaloc may leave the port out, what stands for `{gateways}` never does.
    let has_port = |place: &str| place.rsplit_once(':').is_some_and(|(_, port)| is_port(port));
    if !text.split(',').all(has_port) {
        return Err("a place is HOST:PORT".to_owned());
    }
    let places: Vec<String> = text.split(',').map(|place| format!("iiop:{place}")).collect();
    let read = corbaloc::parse(&format!("corbaloc:{}/", places.join(",")));
    let addresses = read.map_err(|error| error.to_string())?.addresses.into_iter();
    let places = addresses.map(|address| match address {
        Address::Iiop { host, port, .. } => Ok((host, port)),
        Address::InitialReferences => Err("a place is HOST:PORT".to_owned()),
    });
    places.collect::<Result<_, _>>().map(Gateways)
}

/// A reference that a node has written into the command.
fn written(option: &str, text: Option<&str>) -> Result<Reference, Failure> {
    let text = text.unwrap_or_default();
    Reference::parse(text).map_err(|error| {
        let what = format!("{option} {text}: {error}");
        let next = "a node writes it: see [service.NAME] of the domain file";
        Failure::new(codes::REFERENCE, Exit::Usage, what, next)
    })
}

/// Reads `NAME KEY=VALUE ...`.
fn filed(text: &str) -> Result<Filed, String> {
    let (name, settings) = text.split_once(' ').unwrap_or((text, ""));
    let rule = ChannelRule::parse(settings)?;
    Ok(Filed { name: name.to_owned(), settings: rule.to_string() })
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|port| port != 0)
}

impl Serve {
    pub fn run(self) -> Result<Exit, Failure> {
        let home = Home { addresses: self.publish.0.clone(), prefix: Vec::new() };
        match self.service {
            Service::Naming => {
                let service = NamingService::new(home, Limits::default());
                match self.clock()? {
                    Some(clock) => self.with(service.with_clock(clock)),
                    None => self.with(service),
                }
            }
            Service::ReplicationManager => self.run_manager(&home),
            Service::Events => {
                let mut service = EventService::new(home).with_event_bytes_max(self.event_bytes);
                let mut asker = None;
                if let Some(time) = self.clock()? {
                    let told = events::Told::default();
                    service = service.with_clock(told.clock()).with_caller(told.caller());
                    asker = Some(events::Asker { time, told });
                }
                let around = events::Surroundings {
                    leaders: written("--leaders", self.leaders.as_deref())?,
                    figures: match &self.figures {
                        Some(figures) => Some(written("--figures", Some(figures))?),
                        None => None,
                    },
                    gateway: self.own_gateway(),
                    group: self.group.clone(),
                    node: self.node.clone(),
                    filed: self.channels.clone(),
                    bounds: Bounds {
                        channels_bytes: self.channels_bytes,
                        reliable_bytes: self.reliable_bytes,
                    },
                    priority: self.real_time_priority,
                    pushes_at_once: self.pushes_at_once,
                    without: Without::read(&env::var(Without::VARIABLE).unwrap_or_default()),
                };
                let (others, past) = events::start(service, around, asker);
                let takes = events::is_past_the_order;
                self.serve(|server| server.with_objects(others).with_objects_apart(takes, past))
            }
            Service::FaultNotifier => {
                let around = self.surroundings()?;
                let limits = quorba_notifier::Limits::default();
                let notifier = Notifier::new(home, &around.domain_id, limits);
                let shared = faults::Shared(Arc::new(Mutex::new(notifier)));
                faults::watch_for_notifier(around.clone());
                if let Some(leaders) = &self.leaders {
                    let leaders = written("--leaders", Some(leaders))?;
                    accusations::pass_on(around.clone(), leaders, shared.clone());
                }
                faults::deliver(around, shared.clone());
                self.with(shared)
            }
        }
    }

    fn run_manager(&self, home: &Home) -> Result<Exit, Failure> {
        let domain = self.domain()?;
        let limits = quorba_manager::Limits::default();
        let around = self.surroundings()?;
        let manager = Manager::new(domain, &self.group, home, limits);
        let shared = faults::Shared(Arc::new(Mutex::new(manager)));
        faults::watch_for_manager(around.clone());
        faults::look_out(around.clone(), shared.clone());
        let leaders = self.leaders.as_deref();
        let leaders = leaders.map(|text| written("--leaders", Some(text))).transpose()?;
        alive::watch(around.clone(), leaders.clone(), shared.clone());
        silence::watch(around.clone(), shared.clone());
        if let Some(leaders) = leaders {
            unanswered::pass_on(around, &leaders, shared.clone());
        }
        self.with(shared)
    }

    /// Where it calls its own group.
    fn own_gateway(&self) -> String {
        self.own_gateway.as_ref().unwrap_or(&self.gateway).clone()
    }

    fn clock(&self) -> Result<Option<OrderedTime>, Failure> {
        let Some(text) = &self.time else { return Ok(None) };
        let reference = Reference::parse(text).map_err(|error| {
            let what = format!("--time {text}: {error}");
            Failure::new(codes::REFERENCE, Exit::Usage, what, "a node writes it for {time}")
        })?;
        Ok(Some(OrderedTime(Client::new(&reference, ClientOptions::default()))))
    }

    /// What its node tells it.
    fn surroundings(&self) -> Result<faults::Surroundings, Failure> {
        let news = written("--news", self.news.as_deref())?;
        Ok(faults::Surroundings {
            domain_id: faults::domain_id(&news),
            news,
            gateway: self.own_gateway(),
            group: self.group.clone(),
            node: self.node.clone(),
        })
    }

    /// The way to the node's object for services. How long it takes is the node's business.
    fn domain(&self) -> Result<Client, Failure> {
        let reference = written("--domain", self.domain.as_deref())?;
        let code_sets = Some(CodeSets::UTF);
        let options = ClientOptions { call_timeout: None, code_sets, ..ClientOptions::default() };
        Ok(Client::new(&reference, options))
    }

    fn with(&self, objects: impl Objects + Send + 'static) -> Result<Exit, Failure> {
        self.serve(|server| server.with_objects(objects))
    }

    fn serve(&self, with: impl FnOnce(Server) -> Server) -> Result<Exit, Failure> {
        let failed = |error: std::io::Error| {
            let what =
                format!("{} cannot listen at {}: {error}", self.service.as_str(), self.listen);
            let next =
                "a node starts this process by itself: see [service.NAME] of the domain file";
            Failure::new(codes::PROCESS, Exit::Failed, what, next)
        };
        let options =
            ServerOptions { message_bytes_max: MESSAGE_BYTES_MAX, ..ServerOptions::default() };
        let server = Server::bind(self.listen, options).map_err(failed)?;
        with(server).start().map_err(failed)?.serve_forever()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_that_only_processes_of_services_may_call_are_those_of_their_objects() {
        assert_eq!(Service::Events.own_keys(), [quorba_events::DECISIONS_KEY]);
        assert_eq!(Service::ReplicationManager.own_keys(), [quorba_manager::WATCHER_KEY]);
        // `quorba faults` asks the fault notifier for what it delivers.
        for other in [Service::Naming, Service::FaultNotifier] {
            assert!(other.own_keys().is_empty());
        }
    }

    #[test]
    fn gateways_are_read_as_they_are_written() {
        let read = gateways("10.0.0.1:2809,[fd00::2]:2909,n3:3009").expect("three places").0;
        let places: Vec<_> = read.iter().map(|(host, port)| (host.as_str(), *port)).collect();
        assert_eq!(places, [("10.0.0.1", 2809), ("fd00::2", 2909), ("n3", 3009)]);
        for wrong in ["", "n1:0", "rir:", "n1:1,"] {
            assert!(gateways(wrong).is_err(), "{wrong:?}");
        }
    }
}
