//! What a seed stands for: the domain, the load, and its own mix of faults (swarm testing).
//!
//! Invariant: a plan is a function of the seed and nothing else; leaving kinds of faults out is
//! as important as mixing them, because some bugs need peace in between.

mod calls;
mod depths;
mod disks;

use crate::disk::DiskPlan;
use crate::fault::{Fault, PoorLinks};
use crate::network::SlowLink;
use crate::odd::OddPlan;
use crate::profile::Profile;
use crate::rng::Rng;
use quorba_base::{Duration, NodeId};
use quorba_engine::replica::{
    Ack, Concurrency, OnDoubt, Quorum, QuorumRule, ReadConsistency, Replication, ReplyPath, Style,
};

/// So many bytes of requests members keep for those who lack them.
const REQUESTS_KEPT_BYTES: u64 = 16 << 20;

/// The stream from which it is drawn whose states are the application's, chosen so that seeds which
/// are known by number have none.
const APPLICATIONS: u64 = 0x1_1acc;

/// See the module's text. Times are in microseconds unless the name says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) groups: Vec<GroupPlan>,
    pub(crate) quorum: Quorum,
    pub(crate) encrypt: bool,
    pub(crate) accelerated: bool,
    pub(crate) datagram_bytes_max: usize,
    /// How long faults go on.
    pub(crate) safety: Duration,
    pub(crate) links: LinkPlan,
    pub(crate) peers: PeerPlan,
    /// Kinds of faults that happen, and the mean time between two.
    pub(crate) faults: Vec<Fault>,
    pub(crate) fault_every_us: u64,
    /// A majority of nodes may lose its memory at once.
    pub(crate) catastrophe: bool,
    /// The last member of a group that serves may be hurt too.
    pub(crate) careless: bool,
    pub(crate) clients: Vec<ClientPlan>,
    /// Clocks run at up to so many parts per million faster or slower.
    pub(crate) drift_ppm: u64,
    /// Wall clocks differ by up to so many milliseconds.
    pub(crate) wall_skew_ms: u64,
    pub(crate) unavailable_wait_ms: u64,
    pub(crate) request_ms: u64,
    /// Servers outside, which are called under the numbers behind the groups'.
    pub(crate) outside: Vec<OutsidePlan>,
    /// If some groups are durable.
    pub(crate) disk: Option<DiskPlan>,
    /// Servers give wrong replies.
    pub(crate) lies: bool,
    /// Operators take backups and put them back.
    pub(crate) backups: bool,
    /// A node that comes for the first time when the others have worked for a while; then some of
    /// those end, and the rest are cut off.
    pub(crate) latecomer: Option<usize>,
    /// Servers keep a naming service, in which the objects are names.
    pub(crate) names: bool,
}

/// What the network does to datagrams all the time, in chances per thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkPlan {
    pub(crate) loss: u64,
    pub(crate) duplicate: u64,
    pub(crate) late: u64,
    pub(crate) late_us: u64,
    pub(crate) corrupt: u64,
    pub(crate) delay_us: (u64, u64),
    /// Besides, and in peace too.
    pub(crate) slow: Option<SlowLink>,
}

/// Links that carry messages from node to node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerPlan {
    pub(crate) bytes_per_ms: u64,
    /// What may wait for one node in each lane.
    pub(crate) lane_bytes_max: usize,
    pub(crate) chunk_bytes: usize,
    /// Of each transfer, in bytes per second.
    pub(crate) transfer_rate: Option<u64>,
    /// Of a thousand parts of states, those of which a bit flips before they leave.
    pub(crate) bent: u64,
}

/// One group.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlan {
    /// It is created, changed and deleted by operators.
    pub(crate) late: bool,
    /// Bit per node.
    pub(crate) members: u64,
    pub(crate) ack: Ack,
    /// Those that go through the order come from every member, or from the one that the bit names.
    pub(crate) reply: ReplyPath,
    pub(crate) replier: Option<usize>,
    pub(crate) fresh_after_loss: bool,
    pub(crate) state_object: bool,
    /// Servers that somebody else starts: they outlive their node.
    pub(crate) foreign: bool,
    pub(crate) execute_us: (u64, u64),
    pub(crate) start_ms: u64,
    pub(crate) backoff_ms: u64,
    pub(crate) server_reply_ms: u64,
    pub(crate) open_after_ms: u64,
    pub(crate) style: Style,
    pub(crate) leader: Option<usize>,
    /// When a passive group's leader sends its state.
    pub(crate) checkpoint_requests: u32,
    pub(crate) checkpoint_ms: u64,
    /// Or what has changed.
    pub(crate) updates: bool,
    /// Replies are compared in windows of so many requests.
    pub(crate) compared: u32,
    pub(crate) concurrency: Concurrency,
    pub(crate) durable: bool,
    /// Who joins executes everything again, up to so many bytes.
    pub(crate) replay_bytes_max: Option<usize>,
    /// The application keeps the states; this one does not care for them at all.
    pub(crate) by_application: bool,
    /// Bytes of replies after which members take no new named requests.
    pub(crate) retention_bytes_max: usize,
    /// How long requests with a name are remembered.
    pub(crate) retention_ms: u64,
    /// Groups that its servers call.
    pub(crate) calls: Vec<usize>,
    pub(crate) is_called: bool,
    /// Its servers take calls of other connections while they wait for one of their own.
    pub(crate) has_threads: bool,
    /// The operations that change nothing are declared, with what they may miss.
    pub(crate) reads: Option<ReadConsistency>,
    /// What its servers do with some requests.
    pub(crate) odd: Option<OddPlan>,
    /// One member executes each request first.
    pub(crate) staggered: bool,
    /// Which members count for callers that want so many to have their calls.
    pub(crate) replication: Replication,
}

/// A server outside of the domain.
#[derive(Clone, Debug)]
pub(crate) struct OutsidePlan {
    pub(crate) on_doubt: OnDoubt,
    /// It executes nothing twice that comes under the same name.
    pub(crate) recognises: bool,
    pub(crate) execute_us: (u64, u64),
    pub(crate) connect_ms: u64,
    pub(crate) reply_ms: u64,
    pub(crate) faults_every_ms: Option<u64>,
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    pub(crate) group: usize,
    /// Names its requests (FT_REQUEST) and repeats them until there is a reply.
    pub(crate) names_requests: bool,
    /// Calls that may be open at once.
    pub(crate) window: usize,
    pub(crate) think_us: u64,
    pub(crate) padding_max: usize,
    /// Chances per thousand of other calls than `append`.
    pub(crate) peek: u64,
    pub(crate) note: u64,
    pub(crate) last: u64,
    /// Bytes arrive in small pieces.
    pub(crate) chopped: bool,
    /// Repeats a call under the same reference after COMPLETED_NO.
    pub(crate) repeats: bool,
    /// How long it waits for a reply.
    pub(crate) patience_ms: u64,
    /// 0, 1 or 2.
    pub(crate) minor_version: u8,
    pub(crate) big_endian: bool,
    /// Chances per thousand that a call says how many members must have it.
    pub(crate) depths: u64,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut plan = Self::draw_plain(seed).concurrent(&mut Rng::new(seed).fork(0xc4e7));
        if plan.clients.iter().any(|client| client.padding_max > 2_000) {
            // Long requests in tiny pieces are more than a run has time for.
            plan.peers.chunk_bytes = plan.peers.chunk_bytes.max(1_000);
        }
        let plan = plan.with_suppression(&mut Rng::new(seed).fork(0xd0b1));
        match Profile::of_domain(seed) {
            Some((profile, mut rng)) => plan.with(profile, &mut rng),
            None => plan,
        }
    }

    /// The plan of a seed with styles: what the seed stands for without them, but for these, and
    /// with operators beside the faults.
    pub(crate) fn draw_styles(seed: u64) -> Self {
        let mut plan = Self::draw(seed);
        let mut rng = Rng::new(seed).fork(0x57e1);
        let groups = plan.groups.into_iter();
        plan.groups = groups.map(|group| group.with_style(&mut rng)).collect();
        let operators = [Fault::Promotion, Fault::StyleChange];
        plan.faults.extend(operators.into_iter().filter(|_| rng.per_mille(500)));
        if Rng::new(seed).fork(0xb6b8).per_mille(300) {
            plan.faults.push(Fault::MemberChange);
        }
        for group in &mut plan.groups {
            // An operator may let it vote, and its replies tell of all objects.
            if plan.faults.contains(&Fault::StyleChange)
                && group.concurrency == Concurrency::PerObject
            {
                group.concurrency = Concurrency::Pipelined;
            }
        }
        let mut rng = Rng::new(seed).fork(0x707e);
        let plan = match rng.below(10) {
            // One wrong replica is outvoted; one that is wrong while others crash is not.
            0 => plan.with_lies(&mut rng),
            1 | 2 => plan.with_votes(&mut rng),
            _ => plan,
        };
        if plan.lies {
            // One member alone is not to be believed.
            return plan;
        }
        let plan = plan.with_reads(&mut Rng::new(seed).fork(0x4ead));
        let plan = plan.with_stateless(&mut Rng::new(seed).fork(0x57a7));
        let plan = plan.with_little_memory(&mut Rng::new(seed).fork(0xf011));
        let plan = plan.with_replay(&mut Rng::new(seed).fork(0x4e91));
        let plan = plan.with_applications(&mut Rng::new(seed).fork(APPLICATIONS));
        let plan = plan.with_disks(&mut Rng::new(seed).fork(0xd15c));
        let plan = plan.with_rot(&mut Rng::new(seed).fork(0x2077));
        let plan = plan.with_spoilt_states(&mut Rng::new(seed).fork(0x5b01));
        let plan = plan.with_returns(&mut Rng::new(seed).fork(0x4e75));
        plan.with_latecomer(&mut Rng::new(seed).fork(0x1a7e))
    }

    /// The plan of a seed with styles, and with operators who take backups and put them back.
    pub(crate) fn draw_backups(seed: u64) -> Self {
        let mut plan = Self::draw_styles(seed);
        plan.backups = true;
        plan
    }

    /// The plan of a seed with styles, whose servers are naming services, and whose clients resolve
    /// often.
    pub(crate) fn draw_names(seed: u64) -> Self {
        let mut plan = Self::draw_styles(seed);
        plan.names = true;
        for client in &mut plan.clients {
            client.last = client.last.max(400).min(1_000 - client.peek - client.note);
        }
        plan
    }

    /// The plan of a seed with styles, and with groups that come, change and go.
    pub(crate) fn draw_groups(seed: u64) -> Self {
        let mut plan = Self::draw_styles(seed);
        let mut rng = Rng::new(seed).fork(0x6409);
        if plan.lies {
            return plan;
        }
        if plan.disk.is_none() && !plan.catastrophe && rng.per_mille(300) {
            plan.disk = Some(DiskPlan::draw(&mut rng));
            plan.quorum.rule = QuorumRule::Majority;
        }
        if plan.disk.is_some() && rng.per_mille(400) && !plan.faults.contains(&Fault::Blackout) {
            plan.faults.push(Fault::Blackout);
        }
        for _ in 0..rng.between(1, 6) {
            let group = plan.late_group(&mut rng);
            let index = plan.groups.len();
            plan.groups.push(group);
            for _ in 0..rng.between(1, 2) {
                let mut client = plan.clients[rng.index(plan.clients.len())].clone();
                client.group = index;
                plan.clients.push(client);
            }
        }
        plan
    }

    /// A group like one of those that there are from the beginning.
    fn late_group(&self, rng: &mut Rng) -> GroupPlan {
        let mut group = self.groups[rng.index(self.groups.len())].clone();
        let all = (1 << self.nodes) - 1;
        (group.late, group.odd) = (true, None);
        if rng.per_mille(300) {
            group.members = all;
        }
        if self.disk.is_some() && group.may_be_durable() && rng.per_mille(400) {
            (group.durable, group.members) = (true, all);
            (group.foreign, group.fresh_after_loss) = (false, false);
        }
        group
    }

    /// Some groups whose replies go through the order let one be enough.
    fn with_suppression(mut self, rng: &mut Rng) -> Self {
        for group in &mut self.groups {
            if rng.per_mille(700) && group.reply == ReplyPath::Ordered {
                group.reply = ReplyPath::OrderedOnce;
            }
        }
        self
    }

    /// In some domains members of passive groups that send updates are cut off for a while, come
    /// back, and lead.
    fn with_returns(mut self, rng: &mut Rng) -> Self {
        if self.disk.is_some() || !rng.per_mille(120) {
            return self;
        }
        for group in &mut self.groups {
            group.style = rng.pick(&[Style::WarmPassive, Style::ColdPassive]);
            (group.state_object, group.updates) = (true, true);
            (group.foreign, group.fresh_after_loss) = (false, false);
            (group.replay_bytes_max, group.by_application) = (None, false);
            (group.reads, group.compared) = (None, 0);
            group.members = (1 << self.nodes) - 1;
            group.checkpoint_requests = rng.pick(&[1, 3, 10]);
            group.start_ms = group.start_ms.min(50);
        }
        self.faults = vec![Fault::Isolate, Fault::Heal, Fault::Promotion];
        let more = [Fault::ServerCrash, Fault::Partition, Fault::Crash, Fault::PauseLong];
        self.faults.extend(more.into_iter().filter(|_| rng.per_mille(400)));
        self.fault_every_us = rng.pick(&[100_000, 300_000]);
        self
    }

    /// Some groups vote.
    fn with_votes(mut self, rng: &mut Rng) -> Self {
        for group in &mut self.groups {
            if rng.per_mille(700) {
                group.style = Style::ActiveWithVoting;
            }
            group.compared = rng.pick(&[0, 1, 8]);
            // Replies tell of all objects.
            if group.concurrency == Concurrency::PerObject {
                group.concurrency = Concurrency::Pipelined;
            }
        }
        self
    }

    /// All groups vote, and servers give wrong replies.
    fn with_lies(mut self, rng: &mut Rng) -> Self {
        let all = (1 << self.nodes) - 1;
        for group in &mut self.groups {
            (group.style, group.members) = (Style::ActiveWithVoting, all);
            group.foreign = false;
            group.concurrency = Concurrency::Sequential;
        }
        let gentle = [
            Fault::ServersSlow,
            Fault::ServerSlow,
            Fault::Reordering,
            Fault::SlowNetwork,
            Fault::LossBurst,
            Fault::ClientBreak,
            Fault::ClientHurry,
        ];
        self.faults = gentle.into_iter().filter(|_| rng.per_mille(300)).collect();
        // Whoever is left alone is believed (docs/styles.md), and either parts nodes.
        let parts = |fault: &Fault| matches!(fault, Fault::LossBurst | Fault::SlowNetwork);
        self.faults.retain(|fault| !parts(fault));
        self.faults.push(Fault::ServerLies);
        self.lies = true;
        (self.catastrophe, self.careless) = (false, false);
        self
    }

    /// Some groups have members that need not be alike.
    fn with_stateless(mut self, rng: &mut Rng) -> Self {
        for group in &mut self.groups {
            if !rng.per_mille(120) {
                continue;
            }
            group.style = Style::Stateless;
            group.reads = None;
            group.compared = 0;
            group.state_object = rng.per_mille(500);
            group.fresh_after_loss = false;
        }
        let windows = |group| {
            let of_group = self.clients.iter().filter(move |client| client.group == group);
            of_group.map(|client| client.window as u64).sum::<u64>()
        };
        let windows: Vec<u64> = (0..self.groups.len()).map(windows).collect();
        for client in &mut self.clients {
            // Nothing keeps a server from executing again what is repeated elsewhere: who repeats
            // sooner than one server gets through all of it is never answered.
            let group = &self.groups[client.group];
            let all_ms = client.window as u64 * group.execute_us.1 / 1_000;
            if group.style == Style::Stateless {
                client.patience_ms = client.patience_ms.max(3 * all_ms);
            }
            // Nor is a read remembered: who repeats sooner than the link between two nodes takes
            // for what one client asks at a time keeps it full for ever (styles 702473).
            let link_ms = (client.window * client.padding_max) as u64 / self.peers.bytes_per_ms;
            // A passive group has one server that reads for all (styles 1890746).
            let server_ms = windows[client.group] * group.execute_us.1 / 1_000;
            if group.reads.is_some() {
                client.patience_ms = client.patience_ms.max(3 * link_ms).max(2 * server_ms);
            }
        }
        self
    }

    /// What the longest history that is executed again takes on its way, over links of which a
    /// transfer uses half (styles 912717).
    pub(crate) fn longest_replay(&self) -> Duration {
        let bytes =
            self.groups.iter().filter_map(|group| group.replay_bytes_max).max().unwrap_or(0);
        // Without anybody who is in, joiners are given all the requests that they lack, at the rate
        // of transfers (styles 2102456: ten minutes).
        let rate = self.peers.transfer_rate.unwrap_or(u64::MAX);
        let lacking = 1_000 * REQUESTS_KEPT_BYTES / rate;
        Duration::from_millis(2 * bytes as u64 / self.peers.bytes_per_ms + lacking)
    }

    /// Some groups have servers without a state to give, which execute everything again.
    fn with_replay(mut self, rng: &mut Rng) -> Self {
        for group in &mut self.groups {
            let may = !group.foreign && !group.style.is_passive();
            if may && group.style != Style::Stateless && rng.per_mille(120) {
                group.state_object = false;
                group.replay_bytes_max = Some(rng.pick(&[16 << 20, 16 << 20, 20_000]));
                // All requests of a run at 10 kB/s, some of them twice, take longer than is waited.
                let rate = self.peers.transfer_rate;
                self.peers.transfer_rate = rate.map(|rate| rate.max(100_000));
            }
        }
        self
    }

    /// In some domains the states of some groups are the application's, and this one does nothing
    /// for them.
    fn with_applications(mut self, rng: &mut Rng) -> Self {
        if !rng.per_mille(60) {
            return self;
        }
        for group in &mut self.groups {
            if group.style == Style::Stateless || rng.per_mille(300) {
                continue;
            }
            group.style = rng.pick(&[Style::Active, Style::Active, Style::SemiActive]);
            group.by_application = true;
            (group.state_object, group.replay_bytes_max) = (false, None);
            (group.fresh_after_loss, group.updates) = (false, false);
            (group.reads, group.compared, group.odd) = (None, 0, None);
        }
        self
    }

    /// Some groups may remember few replies.
    fn with_little_memory(mut self, rng: &mut Rng) -> Self {
        for group in &mut self.groups {
            if rng.per_mille(150) {
                group.retention_bytes_max = rng.pick(&[300, 2_000, 10_000]);
            }
        }
        self
    }

    /// Some groups declare what changes nothing.
    fn with_reads(mut self, rng: &mut Rng) -> Self {
        use ReadConsistency::{Linearizable, Sequential};
        for (index, group) in self.groups.iter_mut().enumerate() {
            group.reads =
                rng.pick(&[None, Some(Linearizable), Some(Linearizable), Some(Sequential)]);
            if group.reads.is_none() {
                continue;
            }
            // Where a history begins is asked of what is read of it.
            group.fresh_after_loss &= group.reads != Some(Sequential);
            for client in self.clients.iter_mut().filter(|client| client.group == index) {
                client.last = rng.pick(&[100, 300, 500]);
                let may_peek = u64::from(group.concurrency != Concurrency::PerObject);
                client.peek = may_peek * rng.pick(&[50, 300]);
            }
        }
        self
    }

    /// Some groups have servers that get several calls at a time.
    fn concurrent(mut self, rng: &mut Rng) -> Self {
        use Concurrency::{PerObject, Pipelined, Sequential};
        for (index, group) in self.groups.iter_mut().enumerate() {
            let kinds = [Sequential, Sequential, Sequential, Pipelined, Pipelined, PerObject];
            group.concurrency = rng.pick(&kinds);
            if group.concurrency == Sequential {
                continue;
            }
            // What an earlier node has sent them may run beside what this one sends.
            group.foreign = false;
            if group.concurrency == PerObject {
                // Where a history begins is a question of its objects.
                group.fresh_after_loss = false;
            }
            for client in self.clients.iter_mut().filter(|client| client.group == index) {
                client.window = rng.pick(&[1, 4, 16, 64]);
                // That looks at all objects.
                client.peek *= u64::from(group.concurrency == Pipelined);
            }
        }
        self
    }

    fn with(mut self, profile: Profile, rng: &mut Rng) -> Self {
        (self.faults, self.fault_every_us) = profile.mix(rng);
        self.catastrophe = false;
        if profile == Profile::Defections {
            // What has been agreed on matters only if it changes who may agree next.
            self.quorum.rule = QuorumRule::DynamicLinear;
        }
        self
    }

    fn draw_plain(seed: u64) -> Self {
        let mut rng = Rng::new(seed).fork(0x91a4);
        let nodes = rng.pick(&[3, 3, 3, 3, 4, 5, 5]);
        let links = LinkPlan::draw(&mut rng);
        let groups = rng.pick(&[1, 1, 1, 2]);
        let groups = (0..groups).map(|_| GroupPlan::draw(&mut rng, nodes)).collect::<Vec<_>>();
        let clients = 1 + rng.index(5);
        let clients =
            (0..clients).map(|_| ClientPlan::draw(&mut rng, groups.len())).collect::<Vec<_>>();
        let kept = rng.pick(&[0, 1, 2, 3, 5, 8, 100]);
        let catastrophe = rng.per_mille(60);
        let careless = catastrophe || rng.per_mille(120);
        let may = |f: &Fault| {
            !f.needs_profile() && !f.is_of_peers() && (catastrophe || !f.needs_catastrophe())
        };
        let mut faults: Vec<Fault> = Fault::ALL.iter().copied().filter(may).collect();
        rng.shuffle(&mut faults);
        faults.truncate(kept);
        let (peers, more) = PeerPlan::draw(&mut Rng::new(seed).fork(0x9ee5));
        faults.extend(more);
        faults.extend(PoorLinks::of(seed).among_others());
        Self {
            nodes,
            groups,
            quorum: draw_quorum(&mut Rng::new(seed).fork(0x9007), nodes),
            // Nothing else tells forged datagrams from real ones.
            encrypt: links.corrupt > 0
                || faults.iter().any(|f| f.needs_seal())
                || rng.per_mille(250),
            accelerated: rng.per_mille(400),
            datagram_bytes_max: rng.pick(&[1400, 1400, 1400, 9000, 65_000]),
            safety: Duration::from_millis(rng.pick(&[2_000, 4_000, 8_000, 15_000])),
            links,
            peers,
            faults,
            fault_every_us: rng.pick(&[50_000, 200_000, 500_000, 1_500_000]),
            catastrophe,
            careless,
            clients,
            drift_ppm: rng.pick(&[0, 0, 100, 20_000]),
            wall_skew_ms: rng.pick(&[0, 10, 60_000, 7_200_000]),
            unavailable_wait_ms: rng.pick(&[1_000, 5_000, 20_000]),
            request_ms: rng.pick(&[10_000, 30_000, 60_000]),
            outside: Vec::new(),
            disk: None,
            lies: false,
            backups: false,
            latecomer: None,
            names: false,
        }
    }
}

impl Plan {
    /// No faults, and as many busy clients as nodes: a measure of speed.
    pub(crate) fn loaded(nodes: usize) -> Self {
        let mut plan = Self::draw(1);
        let client = ClientPlan {
            group: 0,
            window: 1,
            think_us: 2_000,
            padding_max: 500,
            patience_ms: 40_000,
            ..plan.clients[0].clone()
        };
        let group = GroupPlan {
            members: (1 << nodes) - 1,
            ack: Ack::Majority,
            state_object: true,
            reply: ReplyPath::Direct,
            replier: None,
            foreign: false,
            execute_us: (50, 200),
            ..plan.groups[0].clone()
        };
        plan.nodes = nodes;
        plan.groups = vec![group];
        plan.clients = vec![client; nodes];
        plan.faults.clear();
        plan.quorum = Quorum::default();
        plan.links = LinkPlan { delay_us: (20, 60), ..LinkPlan::default() };
        plan.safety = Duration::from_secs(10);
        plan
    }
}

fn draw_quorum(rng: &mut Rng, nodes: usize) -> Quorum {
    let rule = if rng.per_mille(250) { QuorumRule::DynamicLinear } else { QuorumRule::default() };
    let tie_breaker = NodeId::new(rng.index(nodes) as u8).filter(|_| rng.per_mille(250));
    Quorum { rule, tie_breaker }
}

impl LinkPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self {
            corrupt: if rng.per_mille(200) { rng.between(1, 30) } else { 0 },
            loss: if rng.per_mille(350) { rng.between(1, 80) } else { 0 },
            duplicate: if rng.per_mille(250) { rng.between(1, 100) } else { 0 },
            late: if rng.per_mille(300) { rng.between(1, 60) } else { 0 },
            late_us: rng.pick(&[500, 3_000, 20_000]),
            delay_us: rng.pick(&[(20, 60), (20, 60), (50, 300), (500, 2_000)]),
            slow: None,
        }
    }
}

impl PeerPlan {
    /// The links, and the faults that hit them.
    fn draw(rng: &mut Rng) -> (Self, Vec<Fault>) {
        let plan = Self {
            bytes_per_ms: rng.pick(&[100, 1_000, 100_000, 1_000_000]),
            lane_bytes_max: rng.pick(&[2_000, 20_000, 4 << 20]),
            // States are small: many chunks make a long transfer of one.
            chunk_bytes: rng.pick(&[16, 100, 1_000, 64 << 10]),
            transfer_rate: rng.per_mille(200).then(|| rng.pick(&[10_000, 1_000_000])),
            bent: 0,
        };
        let is_mixed_in = rng.per_mille(400);
        let mut faults: Vec<Fault> =
            Fault::ALL.iter().copied().filter(|fault| is_mixed_in && fault.is_of_peers()).collect();
        faults.retain(|_| rng.per_mille(600));
        (plan, faults)
    }
}

impl GroupPlan {
    pub(crate) fn draw(rng: &mut Rng, nodes: usize) -> Self {
        let all = (1 << nodes) - 1;
        let members = if rng.per_mille(750) {
            all
        } else {
            let mut members = rng.below(all) + 1;
            if members.count_ones() < 2 {
                members = all;
            }
            members
        };
        Self {
            members,
            ack: if rng.per_mille(150) { Ack::Safe } else { Ack::Majority },
            reply: if rng.per_mille(200) { ReplyPath::Ordered } else { ReplyPath::Direct },
            replier: rng.per_mille(150).then_some(members.trailing_zeros() as usize),
            fresh_after_loss: rng.per_mille(200),
            state_object: !rng.per_mille(60),
            foreign: rng.per_mille(120),
            execute_us: rng.pick(&[(5, 20), (50, 200), (1_000, 4_000), (10, 20_000)]),
            start_ms: rng.pick(&[5, 50, 500]),
            backoff_ms: rng.pick(&[20, 100, 1_000]),
            server_reply_ms: rng.pick(&[500, 2_000, 5_000]),
            open_after_ms: rng.pick(&[500, 3_000]),
            style: Style::Active,
            leader: None,
            checkpoint_requests: 100,
            checkpoint_ms: 1_000,
            updates: false,
            compared: 0,
            concurrency: Concurrency::Sequential,
            late: false,
            durable: false,
            retention_bytes_max: 64 << 20,
            retention_ms: 300_000,
            replay_bytes_max: None,
            by_application: false,
            calls: Vec::new(),
            is_called: false,
            has_threads: true,
            reads: None,
            odd: None,
            staggered: false,
            replication: Replication::Ordered,
        }
    }

    pub(crate) fn may_be_durable(&self) -> bool {
        let has_state = self.style != Style::Stateless && !self.by_application;
        has_state && self.replay_bytes_max.is_none()
    }

    /// Some style, and what it needs.
    pub(crate) fn with_style(mut self, rng: &mut Rng) -> Self {
        self.style =
            rng.pick(&[Style::WarmPassive, Style::ColdPassive, Style::SemiActive, Style::Active]);

        self.leader = rng.per_mille(300).then_some(self.members.trailing_zeros() as usize);
        self.checkpoint_requests = rng.pick(&[1, 3, 20, 1_000]);
        self.checkpoint_ms = rng.pick(&[5, 100, 2_000]);
        self.updates = rng.per_mille(500);
        self.state_object = true;
        // What somebody else runs cannot be ended and started as a cold group wants it.
        self.foreign &= self.style != Style::ColdPassive;
        self
    }
}

impl ClientPlan {
    pub(crate) fn draw(rng: &mut Rng, groups: usize) -> Self {
        Self {
            group: rng.index(groups),
            names_requests: rng.per_mille(400),
            window: rng.pick(&[1, 1, 1, 4, 16]),
            think_us: rng.pick(&[0, 1_000, 10_000, 100_000]),
            padding_max: rng.pick(&[0, 0, 100, 2_000, 20_000]),
            peek: rng.pick(&[0, 100, 400]),
            note: rng.pick(&[0, 0, 50]),
            last: rng.pick(&[0, 50, 300]),
            chopped: rng.per_mille(150),
            repeats: rng.per_mille(600),
            patience_ms: rng.pick(&[1_000, 5_000, 40_000]),
            minor_version: rng.pick(&[0, 1, 2, 2, 2]),
            big_endian: rng.per_mille(300),
            depths: 0,
        }
    }
}
