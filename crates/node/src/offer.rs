//! What a node offers to the services of its domain: `Quorba::Domain` of idl/Domain.idl, at a
//! loopback port of its own.
//!
//! What it is not: another way to change groups. It asks the data plane what the admin API asks it,
//! under a name of the operation that is made of the caller's FT_REQUEST and of what is wanted, so
//! that a call that is repeated by another node is done once.
//!
//! Invariants: only this node connects to it, with a secret made anew at each start, so that no
//! other program of the host can change groups by it; services call it while they execute a
//! request, by way of the order; nothing that it replies is longer than that way takes.

mod factories;

use self::factories::Caller;
use crate::NodeError;
use crate::admin::{Question, Refusal};
use crate::reference::ParsedReference;
use quorba_admin::status::SchedulingStatus;
use quorba_admin::{CatalogChange, Defined};
use quorba_base::{FNV_OFFSET, fnv1a};
use quorba_config::{DOMAIN_OBJECT_KEY, Definition, Domain as File, Gateways, ObjectGroup};
use quorba_corba::{Any, Call, Home, Interface, Object, Objects};
use quorba_giop::{ExceptionKind, FtRequest, SystemException, context};
use quorba_idl::ft;
use quorba_idl::quorba::domain as raised;
use quorba_idl::quorba::domain::{NoSuchGroup, NoSuchType, Refused};
use quorba_idl::quorba::{
    self, Domain, EventServiceFigures, GroupInfo, GroupInfos, NewsItems, NodeState, NodeStates,
    Settings,
};
use quorba_orb::{RunningServer, SECRET_BYTES, Server, ServerOptions, Takes};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long the data plane may take to say what it knows.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a change may take to get its place in the order; a view may be forming.
const CHANGE_WITHIN: Duration = Duration::from_secs(20);
/// How often it is asked whether members are in.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The longest that a caller waits for members.
const WAIT_MS_MAX: u32 = 30_000;
/// Octets of notes in one reply; the way back takes 256 KiB.
const NOTES_BYTES_MAX: usize = 160 << 10;

/// What the data plane is asked for services.
pub(crate) enum Asked {
    /// The group of this name.
    Group(String, oneshot::Sender<Option<Known>>),
    /// Groups with notes, behind that name, at most so many.
    Noted(String, usize, oneshot::Sender<Vec<Known>>),
    /// An object may have been made that nobody knows of, in words for an operator.
    LeftBehind(String),
    /// Why a group was not created for an application, in words for an operator.
    NotCreated(String),
    /// What has happened behind that number; answered when there is something.
    News(u64, mpsc::Sender<NewsItems>),
    /// All nodes, and whether they are in the ring.
    Nodes(oneshot::Sender<Vec<(String, bool)>>),
    /// Who leads the group of this name, once that is another one than this.
    Leader(String, String, mpsc::Sender<String>),
    /// Where this node's gateway has the group of this name.
    Gateway(String, oneshot::Sender<String>),
    /// The object of the group's server here that can be asked whether it is alive: its port, key
    /// and type.
    Monitorable(String, oneshot::Sender<Option<(u16, Vec<u8>, String)>>),
    /// What the channels of the event service of this name do, as its server here says.
    Channels(String, EventServiceFigures),
    /// Which class the threads of this group's server on this node have.
    Scheduled(String, SchedulingStatus, oneshot::Sender<()>),
}

/// A group as this node knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) definition: Definition,
    pub(crate) note: String,
    /// Number and version of its references.
    pub(crate) identity: ObjectGroup,
    pub(crate) type_id: String,
    pub(crate) object_key: Vec<u8>,
    /// Of each node, members first.
    pub(crate) gateways: Gateways,
    pub(crate) members: Vec<String>,
    pub(crate) members_in: Vec<String>,
    /// Members that are being given a state.
    pub(crate) coming: Vec<String>,
    pub(crate) leader: String,
    /// The style has one.
    pub(crate) is_led: bool,
}

/// The running object.
pub(crate) struct Offer {
    server: RunningServer,
    secret: [u8; SECRET_BYTES],
    /// Beside it: who asks for news waits, and nobody else does.
    news: RunningServer,
    /// Beside both: who dispatches has to know at once who leads.
    leaders: RunningServer,
    /// The key of the object there that takes figures.
    figures_key: Vec<u8>,
}

/// Where the object is, and what a connection to it begins with.
#[derive(Clone)]
pub(crate) struct OfferedEndpoint {
    pub(crate) address: SocketAddr,
    pub(crate) secret: [u8; SECRET_BYTES],
}

impl Offer {
    pub(crate) fn start(
        domain: &File,
        ask: impl Fn(Question) -> bool + Send + Sync + 'static,
    ) -> Result<Self, NodeError> {
        let ask: Ask = Arc::new(ask);
        let id = domain.id.clone();
        let types = domain.types.iter().map(|one| (one.id.clone(), one.keys.clone())).collect();
        let object = DomainObject { ask, id, types: Arc::new(types), caller: Caller::default() };
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).expect("the kernel has randomness");
        let options = ServerOptions { secret: Some(secret), ..ServerOptions::default() };
        let server = Server::bind((Ipv4Addr::LOCALHOST, 0), options);
        let server = server.and_then(|server| server.with_objects(object.clone()).start());
        let figures_key = figures_key();
        let leaders = LeadersObject { object: object.clone(), figures_key: figures_key.clone() };
        let news = serve(NewsObject(object), |_, operation| operation == b"items");
        let leaders = serve(leaders, |_, operation| operation == b"leader");
        let failed = NodeError::Resources;
        let (news, leaders) = (news.map_err(failed)?, leaders.map_err(failed)?);
        Ok(Self { server: server.map_err(failed)?, secret, news, leaders, figures_key })
    }

    /// What stands for `{news}`.
    pub(crate) fn news_reference(&self) -> String {
        let key = String::from_utf8_lossy(NEWS_KEY);
        format!("corbaloc:iiop:1.2@{}/{key}", self.news.address())
    }

    /// What stands for `{leaders}`.
    pub(crate) fn leaders_reference(&self) -> String {
        let key = String::from_utf8_lossy(LEADERS_KEY);
        format!("corbaloc:iiop:1.2@{}/{key}", self.leaders.address())
    }

    /// Where services tell what they do.
    pub(crate) fn figures_reference(&self) -> String {
        let key = String::from_utf8_lossy(&self.figures_key);
        format!("corbaloc:iiop:1.2@{}/{key}", self.leaders.address())
    }

    pub(crate) fn entrance(&self) -> OfferedEndpoint {
        OfferedEndpoint { address: self.server.address(), secret: self.secret }
    }
}

/// Serves objects of which `waits` names the requests that wait. Several services of a node ask:
/// none of them waits behind another one.
fn serve(
    objects: impl Objects + Clone + Send + Sync + 'static,
    waits: Takes,
) -> std::io::Result<RunningServer> {
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0), ServerOptions::default())?;
    let each = objects.clone();
    server.with_waiting(waits, move || Box::new(each.clone())).with_objects(objects).start()
}

type Ask = Arc<dyn Fn(Question) -> bool + Send + Sync>;

/// The key of the object that has the news.
const NEWS_KEY: &[u8] = b"QuorbaNews";
/// The key of the object that knows who leads.
const LEADERS_KEY: &[u8] = b"QuorbaLeaders";
/// The longest that somebody waits for news.
const NEWS_WAIT_MS_MAX: u32 = 1_000;

/// How long the data plane may take to say who leads now: who dispatches stops without it.
const LEADER_WITHIN: Duration = Duration::from_millis(500);
/// No node is called so.
const NO_NAME: &str = "?";
/// Octets of why a group was not created that are shown.
const WHY_BYTES_MAX: usize = 1_000;
/// Octets of a reason that is shown.
const REFUSED_BYTES_MAX: usize = 200;

/// What happens, for the services of this node.
#[derive(Clone)]
struct NewsObject(DomainObject);

impl Objects for NewsObject {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        (key == NEWS_KEY).then_some(quorba::NEWS)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        quorba::dispatch_news(self, call)
    }
}

impl quorba::News for NewsObject {
    fn domain_id(&mut self) -> Result<String, SystemException> {
        Ok(self.0.id.clone())
    }

    fn members_in(&mut self, name: String) -> Result<Vec<String>, SystemException> {
        Ok(self.0.known(&name)?.map(|known| known.members_in).unwrap_or_default())
    }

    fn items(&mut self, after: u64, wait_ms: u32) -> Result<NewsItems, SystemException> {
        let (sender, answer) = mpsc::channel();
        if !(self.0.ask)(Question::Service(Asked::News(after, sender))) {
            return Err(transient());
        }
        let within = Duration::from_millis(wait_ms.min(NEWS_WAIT_MS_MAX).into());
        // Nothing has happened, as far as one has waited.
        Ok(wait(&answer, within).unwrap_or_default())
    }
}

/// A key that nobody guesses.
fn figures_key() -> Vec<u8> {
    let mut octets = [0; 16];
    getrandom::fill(&mut octets).expect("the kernel has randomness");
    format!("QuorbaFigures-{:032x}", u128::from_be_bytes(octets)).into_bytes()
}

/// Who leads which group, for the services of this node; and what these do, for the node.
#[derive(Clone)]
struct LeadersObject {
    object: DomainObject,
    figures_key: Vec<u8>,
}

impl Objects for LeadersObject {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        match key {
            LEADERS_KEY => Some(quorba::LEADERS),
            key if key == self.figures_key => Some(quorba::FIGURES),
            _ => None,
        }
    }

    fn dispatch(&mut self, key: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        match key {
            LEADERS_KEY => quorba::dispatch_leaders(self, call),
            _ => quorba::dispatch_figures(self, call),
        }
    }
}

impl quorba::Leaders for LeadersObject {
    fn leader(
        &mut self,
        name: String,
        known: String,
        wait_ms: u32,
    ) -> Result<String, SystemException> {
        let within = Duration::from_millis(wait_ms.min(NEWS_WAIT_MS_MAX).into());
        if let Some(other) = self.leader_within(&name, known.clone(), within)? {
            return Ok(other);
        }
        // That nothing was heard does not mean that nothing has changed. A data plane that stands
        // still must not be taken to say so: what is no name is answered at once.
        let now = self.leader_within(&name, NO_NAME.to_owned(), LEADER_WITHIN)?;
        now.ok_or_else(|| quorba_corba::raise_system(ExceptionKind::NoResponse))
    }

    fn gateway(&mut self, name: String) -> Result<String, SystemException> {
        self.object.answer(ANSWER_WITHIN, |asker| Question::Service(Asked::Gateway(name, asker)))
    }

    fn monitorable(&mut self, name: String) -> Result<Object, SystemException> {
        let question = |asker| Question::Service(Asked::Monitorable(name, asker));
        let Some((port, key, type_id)) = self.object.answer(ANSWER_WITHIN, question)? else {
            return Ok(Object::nil());
        };
        let addresses = vec![(Ipv4Addr::LOCALHOST.to_string(), port)];
        Ok(Home { addresses, prefix: Vec::new() }.object(&type_id, &key))
    }
}

impl quorba::Figures for LeadersObject {
    fn channels(
        &mut self,
        name: String,
        figures: EventServiceFigures,
    ) -> Result<(), SystemException> {
        match (self.object.ask)(Question::Service(Asked::Channels(name, figures))) {
            true => Ok(()),
            false => Err(transient()),
        }
    }

    fn scheduled(
        &mut self,
        name: String,
        priority: u32,
        mut refused: String,
    ) -> Result<(), SystemException> {
        refused.truncate(refused.floor_char_boundary(REFUSED_BYTES_MAX));
        let scheduling = SchedulingStatus {
            wanted_priority: priority,
            real_time_priority: if refused.is_empty() { priority } else { 0 },
            refused: (!refused.is_empty()).then_some(refused),
        };
        self.object.answer(ANSWER_WITHIN, |asker| {
            Question::Service(Asked::Scheduled(name, scheduling, asker))
        })
    }
}

impl LeadersObject {
    /// Who leads once that is another one than `known`, if it is said within that time.
    fn leader_within(
        &self,
        name: &str,
        known: String,
        within: Duration,
    ) -> Result<Option<String>, SystemException> {
        let (sender, answer) = mpsc::channel();
        let asked = Asked::Leader(name.to_owned(), known, sender);
        if !(self.object.ask)(Question::Service(asked)) {
            return Err(transient());
        }
        Ok(wait(&answer, within))
    }
}

/// Waits for an answer. Who is not waited for any more, because too many wait or another one waits
/// for the same, waits to the end all the same: it would ask again at once, and so would the other.
fn wait<T>(answer: &mpsc::Receiver<T>, within: Duration) -> Option<T> {
    let until = Instant::now() + within;
    match answer.recv_timeout(within) {
        Ok(value) => Some(value),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => {
            thread::sleep(until.saturating_duration_since(Instant::now()));
            None
        }
    }
}

/// See the module's text.
#[derive(Clone)]
struct DomainObject {
    ask: Ask,
    id: String,
    types: Arc<BTreeMap<String, String>>,
    caller: Caller,
}

impl Objects for DomainObject {
    fn interface(&self, key: &[u8]) -> Option<Interface> {
        (key == DOMAIN_OBJECT_KEY).then_some(quorba::DOMAIN)
    }

    fn dispatch(&mut self, _: &[u8], call: &mut Call<'_>) -> Result<(), SystemException> {
        let request = call.context(context::FT_REQUEST).map(FtRequest::decode);
        self.caller = Caller {
            request: request.and_then(Result::ok),
            is_in_doubt: call.context(context::CALL_IN_DOUBT).is_some(),
        };
        quorba::dispatch_domain(self, call)
    }
}

/// Wakes the thread that waits.
struct Waiting(Thread);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The answer, if it comes within that time; the thread sleeps meanwhile.
fn wait_for<T>(mut answer: oneshot::Receiver<T>, within: Duration) -> Option<T> {
    let until = Instant::now() + within;
    let waker = Waker::from(Arc::new(Waiting(thread::current())));
    loop {
        match Pin::new(&mut answer).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer.ok(),
            Poll::Pending => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

fn transient() -> SystemException {
    quorba_corba::raise_system(ExceptionKind::Transient)
}

fn refused(refusal: Refusal) -> Refused {
    Refused { why: refusal.text, may_be_repeated: refusal.is_passing }
}

impl DomainObject {
    /// Asks the data plane and waits.
    fn answer<T>(
        &self,
        within: Duration,
        question: impl FnOnce(oneshot::Sender<T>) -> Question,
    ) -> Result<T, SystemException> {
        let (sender, answer) = oneshot::channel();
        if !(self.ask)(question(sender)) {
            return Err(transient());
        }
        wait_for(answer, within).ok_or_else(transient)
    }

    fn known(&self, name: &str) -> Result<Option<Known>, SystemException> {
        let name = name.to_owned();
        self.answer(ANSWER_WITHIN, |asker| Question::Service(Asked::Group(name, asker)))
    }

    /// The same name for the same wish of the same caller, whoever passes it on.
    fn operation(&self, change: &CatalogChange) -> String {
        let (kind, text) = match change {
            CatalogChange::Create(definition) => ("create", definition.text.as_str()),
            CatalogChange::Change(definition) => ("change", definition.text.as_str()),
            CatalogChange::Delete(_) => ("delete", ""),
        };
        let identity = self.caller.identity();
        let parts = [identity.as_slice(), kind.as_bytes(), change.name().as_bytes()];
        let parts = [parts.join(&0), text.as_bytes().to_vec()].join(&0);
        let sum = fnv1a(FNV_OFFSET, parts.iter().copied());
        let again = fnv1a(sum, parts);
        format!("service-{sum:016x}{again:016x}")
    }

    fn define(&self, change: CatalogChange) -> Result<Result<Defined, Refused>, SystemException> {
        let operation = self.operation(&change);
        let question = |asker| Question::Define { operation, change, asker };
        Ok(self.answer(CHANGE_WITHIN, question)?.map_err(refused))
    }

    fn tell_not_created(&self, what: String) {
        // A node that ends tells nobody.
        let _is_told = (self.ask)(Question::Service(Asked::NotCreated(what)));
    }

    /// The application hears that nothing was created, and no reason: an operator hears it.
    fn tell_refused(&self, type_id: &str, refused: &Refused) {
        if refused.may_be_repeated {
            return;
        }
        let (type_id, why) = (type_id.escape_debug(), refused.why.trim());
        let why = &why[..why.floor_char_boundary(WHY_BYTES_MAX)];
        self.tell_not_created(format!(
            "an object of type {type_id} was not created: {why}; mend [type.\"{type_id}\"] of the \
             domain file and start the node again, or have the application ask for another \
             property"
        ));
    }

    fn tell_missing(&self, type_id: &str, known: &Known) {
        let missing = known.members.iter().filter(|node| !known.members_in.contains(*node));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        if missing.is_empty() {
            return;
        }
        let (type_id, missing) = (type_id.escape_debug(), missing.join(", "));
        self.tell_not_created(format!(
            "no server for an object of type {type_id} came in in time at {missing}; the log of \
             that node says why"
        ));
    }

    /// A group when all of its members are in, or after so long.
    fn settled(&self, name: &str, wait_ms: u32) -> Result<Option<Known>, SystemException> {
        let until = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX).into());
        loop {
            let known = self.known(name)?;
            let is_settled =
                known.as_ref().is_some_and(|group| group.members_in.len() == group.members.len());
            if is_settled || Instant::now() >= until {
                return Ok(known);
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn info(&self, known: Known) -> GroupInfo {
        let ObjectGroup { id, version } = known.identity;
        let leader = known.members.iter().position(|name| *name == known.leader);
        let reference = Object(
            ParsedReference {
                domain_id: self.id.clone(),
                identity: known.identity,
                type_id: known.type_id,
                object_key: known.object_key,
                gateways: known.gateways,
                primary: leader.filter(|_| known.is_led),
            }
            .to_ior(),
        );
        GroupInfo {
            name: known.definition.name,
            id,
            version,
            members: known.members,
            members_in: known.members_in,
            leader: if known.is_led { known.leader } else { String::new() },
            note: known.note,
            reference,
        }
    }
}

fn pairs(keys: Settings) -> Vec<(String, String)> {
    keys.into_iter().map(|setting| (setting.name, setting.value)).collect()
}

fn never(why: String) -> Refused {
    Refused { why, may_be_repeated: false }
}

impl Domain for DomainObject {
    fn id(&mut self) -> Result<String, SystemException> {
        Ok(self.id.clone())
    }

    fn nodes(&mut self) -> Result<NodeStates, SystemException> {
        let nodes = self.answer(ANSWER_WITHIN, |asker| Question::Service(Asked::Nodes(asker)))?;
        Ok(nodes.into_iter().map(|(name, is_up)| NodeState { name, is_up }).collect())
    }

    fn types(&mut self) -> Result<Vec<String>, SystemException> {
        Ok(self.types.keys().cloned().collect())
    }

    fn create_group(
        &mut self,
        name: String,
        type_id: String,
        keys: Settings,
        wait_ms: u32,
    ) -> Result<GroupInfo, raised::CreateGroupError> {
        let keys = pairs(keys);
        let is_connected = keys.iter().any(|(key, _)| key == "connect");
        let base = match self.types.get(&type_id) {
            Some(base) => base.as_str(),
            None if is_connected => "",
            None => return Err(NoSuchType {}.into()),
        };
        let made = Definition::made_of(&name, base, &keys).map_err(never);
        let defined = match made {
            Ok(definition) => self.define(CatalogChange::Create(definition))?,
            Err(refused) => Err(refused),
        };
        if let Err(refused) = defined {
            self.tell_refused(&type_id, &refused);
            return Err(refused.into());
        }
        let known = self.settled(&name, wait_ms)?.ok_or(transient())?;
        if wait_ms > 0 {
            self.tell_missing(&type_id, &known);
        }
        Ok(self.info(known))
    }

    fn change_group(
        &mut self,
        name: String,
        keys: Settings,
        wait_ms: u32,
    ) -> Result<GroupInfo, raised::ChangeGroupError> {
        let known = self.known(&name)?.ok_or(NoSuchGroup {})?;
        let base = known.definition.keys_toml();
        let definition = Definition::made_of(&name, &base, &pairs(keys)).map_err(never)?;
        if definition != known.definition {
            self.define(CatalogChange::Change(definition))??;
        }
        let known = self.settled(&name, wait_ms)?;
        Ok(self.info(known.ok_or(NoSuchGroup {})?))
    }

    fn delete_group(&mut self, name: String) -> Result<bool, raised::DeleteGroupError> {
        if self.known(&name)?.is_none() {
            return Ok(false);
        }
        match self.define(CatalogChange::Delete(name))? {
            Ok(_) => Ok(true),
            Err(refused) => Err(refused.into()),
        }
    }

    fn promote(&mut self, name: String, node: String) -> Result<(), raised::PromoteError> {
        let known = self.known(&name)?.ok_or(NoSuchGroup {})?;
        if known.leader == node {
            return Ok(());
        }
        let change = quorba_admin::Change::Promote(node.clone());
        let question = |asker| Question::Change(name.clone(), change, asker);
        self.answer(CHANGE_WITHIN, question)?.map_err(never)?;
        let until = Instant::now() + ANSWER_WITHIN;
        while self.known(&name)?.ok_or(NoSuchGroup {})?.leader != node {
            if Instant::now() >= until {
                return Err(never(format!("{node} has not become the leader")).into());
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn group(&mut self, name: String) -> Result<GroupInfo, raised::GroupError> {
        let known = self.known(&name)?.ok_or(NoSuchGroup {})?;
        Ok(self.info(known))
    }

    fn member(&mut self, name: String, node: String) -> Result<Object, raised::MemberError> {
        let known = self.known(&name)?.ok_or(NoSuchGroup {})?;
        if !known.members_in.contains(&node) {
            return Ok(Object::nil());
        }
        // Members come first among gateways, in the same order.
        let index = known.members.iter().position(|member| *member == node);
        let gateway = index.and_then(|index| known.gateways.addresses.get(index).cloned());
        let object = |gateway| {
            let home = Home { addresses: vec![gateway], prefix: Vec::new() };
            home.object(&known.type_id, &known.object_key)
        };
        Ok(gateway.map_or_else(Object::nil, object))
    }

    fn coming(&mut self, name: String) -> Result<Vec<String>, SystemException> {
        Ok(self.known(&name)?.map(|known| known.coming).unwrap_or_default())
    }

    fn noted_groups(
        &mut self,
        after: String,
        how_many: u32,
    ) -> Result<GroupInfos, SystemException> {
        let most = usize::try_from(how_many).unwrap_or(usize::MAX).min(1_000);
        let question = |asker| Question::Service(Asked::Noted(after, most, asker));
        let mut octets = 0;
        let mut infos = GroupInfos::new();
        for known in self.answer(ANSWER_WITHIN, question)? {
            octets += known.note.len();
            if octets > NOTES_BYTES_MAX && !infos.is_empty() {
                break;
            }
            infos.push(self.info(known));
        }
        Ok(infos)
    }

    fn create_by_factory(
        &mut self,
        the_factory: Object,
        type_id: String,
        the_criteria: ft::Criteria,
    ) -> Result<(Object, Any), raised::CreateByFactoryError> {
        self.create(&the_factory, &type_id, &the_criteria)
    }

    fn delete_by_factory(
        &mut self,
        the_factory: Object,
        factory_creation_id: Any,
    ) -> Result<(), raised::DeleteByFactoryError> {
        self.delete(&the_factory, &factory_creation_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorba_idl::quorba::Leaders;
    use std::sync::Mutex;

    fn leaders(ask: impl Fn(Question) -> bool + Send + Sync + 'static) -> LeadersObject {
        let (id, types, caller) = ("d".to_owned(), Arc::default(), Caller::default());
        let object = DomainObject { ask: Arc::new(ask), id, types, caller };
        LeadersObject { object, figures_key: figures_key() }
    }

    #[test]
    fn a_node_that_does_not_answer_is_not_taken_to_say_that_nothing_has_changed() {
        // It takes questions, and answers none.
        let kept = Mutex::new(Vec::new());
        let mut silent = leaders(move |question| {
            kept.lock().expect("no holder panics").push(question);
            true
        });
        let answer = silent.leader("events".to_owned(), "n1".to_owned(), 1);
        assert_eq!(answer.map_err(|raised| raised.kind), Err(ExceptionKind::NoResponse));
    }

    #[test]
    fn who_waits_for_news_keeps_nobody_waiting() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, (told, asks)) = (Arc::clone(&asked), mpsc::channel());
        let object = leaders(move |question| {
            match question {
                Question::Service(Asked::News(_, asker)) => {
                    kept.lock().expect("no holder panics").push(asker);
                    told.send(()).expect("the test waits");
                }
                Question::Service(Asked::Group(_, asker)) => {
                    asker.send(None).expect("it waits");
                }
                _ => return false,
            }
            true
        });
        let server = serve(NewsObject(object.object), |_, operation| operation == b"items");
        let server = server.expect("a port");
        let client = || {
            let reference = quorba_orb::Reference::direct(server.address(), NEWS_KEY);
            quorba_orb::Client::new(&reference, quorba_orb::ClientOptions::default())
        };
        let waits = || {
            let mut client = client();
            thread::spawn(move || quorba::NewsStub(&mut client).items(&0, &NEWS_WAIT_MS_MAX))
        };
        let all = [waits(), waits()];
        all.iter().for_each(|_| asks.recv().expect("both ask"));
        let inside = quorba::NewsStub(&mut client()).members_in(&"bank".to_owned());
        assert_eq!(inside.expect("answered"), Vec::<String>::new());
        // Both wait still, beside each other.
        for asker in asked.lock().expect("no holder panics").drain(..) {
            asker.send(Vec::new()).expect("it waits");
        }
        for one in all {
            assert!(one.join().expect("no panic").is_ok());
        }
    }

    #[test]
    fn a_node_that_answers_says_who_leads_when_nothing_has_changed_too() {
        let kept = Mutex::new(Vec::new());
        let mut quiet = leaders(move |question| {
            let Question::Service(Asked::Leader(_, known, asker)) = question else { return false };
            match known == "n1" {
                true => kept.lock().expect("no holder panics").push(asker),
                false => asker.send("n1".to_owned()).expect("it waits"),
            }
            true
        });
        let answer = quiet.leader("events".to_owned(), "n1".to_owned(), 1);
        assert_eq!(answer.as_deref(), Ok("n1"));
        let answer = quiet.leader("events".to_owned(), "n2".to_owned(), 1);
        assert_eq!(answer.as_deref(), Ok("n1"));
    }
}
