//! `quorba servant`: the processes of a demo that are no nodes.
//!
//! What it is not: a command for users; it is hidden, and its flags are those of the examples'
//! servers and clients.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use quorba_orb::Reference;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::bank::servant::Faults;
use crate::load::{Load, LoadError, LoadOptions};
use crate::{bank, clock, processes, shop};

/// Pause between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Parser)]
#[command(name = "quorba servant", about = "Processes of the demo")]
struct Servant {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// A bank server; prints READY when it serves.
    Bank(BankFlags),
    /// A server that tells the time; prints READY when it serves.
    Clock(ClockFlags),
    /// A server that calls a bank, and perhaps another such server; prints READY when it serves.
    Shop(ShopFlags),
    /// Clients of a bank; prints one line of JSON at the end.
    Load(LoadFlags),
    /// Ends what is left of a run when the program at the other end of standard input is gone.
    Reaper,
}

#[derive(Args)]
struct BankFlags {
    /// Address to listen at.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port to listen at.
    #[arg(long)]
    port: u16,
    /// Microseconds that every changing call takes on top.
    #[arg(long, default_value_t = 0)]
    delay_us: u64,
    /// Kill this process in its changing call of this number, before replying.
    #[arg(long)]
    crash_after: Option<u64>,
    /// Folder of the run, by which this process can be found.
    #[arg(long)]
    run: Option<PathBuf>,
}

#[derive(Args)]
struct ClockFlags {
    /// Port to listen at, on loopback.
    #[arg(long)]
    port: u16,
    /// Reference to ordered time; without one the time is this machine's.
    #[arg(long)]
    time: Option<String>,
}

#[derive(Args)]
struct ShopFlags {
    /// Port to listen at, on the loopback interface.
    #[arg(long)]
    port: u16,
    /// The bank: corbaloc or IOR.
    #[arg(long, value_parser = reference)]
    bank: Reference,
    /// Another shop.
    #[arg(long, value_parser = reference)]
    partner: Option<Reference>,
}

fn reference(text: &str) -> Result<Reference, String> {
    Reference::parse(text).map_err(|error| error.to_string())
}

#[derive(Args)]
struct LoadFlags {
    /// The bank: corbaloc or IOR.
    #[arg(long = "ref")]
    reference: String,
    /// Clients, each with a connection of its own.
    #[arg(long, default_value_t = 4)]
    clients: usize,
    /// How long to call.
    #[arg(long)]
    seconds: f64,
    /// Calls per second of all clients together; without, as many as they can.
    #[arg(long, default_value_t = 0)]
    rate: u32,
    /// Accounts acct-0 and on.
    #[arg(long, default_value_t = 10)]
    accounts: u32,
    /// Seed of the clients' choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What the calls' references begin with.
    #[arg(long, default_value = "c")]
    name: String,
    /// File to record the calls in, one line of JSON each.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Share of oneways, in percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    oneway_share: u8,
    /// Give calls an FT_REQUEST identity and repeat those of unknown outcome.
    #[arg(long)]
    ft_request: bool,
    /// Milliseconds that a call may take.
    #[arg(long, default_value_t = 10_000)]
    timeout_ms: u64,
}

/// Why a servant process ended.
#[derive(Debug)]
pub enum ServantError {
    /// Its flags are wrong, or help was asked for.
    Usage(clap::Error),
    /// The machine did not give what it needs.
    System {
        /// What it was about to do.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The load could not begin.
    Load(LoadError),
    /// The recording has a hole, so that it accounts for nothing.
    Record {
        /// What went wrong with the file.
        fault: String,
    },
}

impl fmt::Display for ServantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(error) => write!(f, "{error}"),
            Self::System { doing, source } => write!(f, "cannot {doing}: {source}"),
            Self::Load(error) => write!(f, "{error}"),
            Self::Record { fault } => write!(f, "the recording has a hole: {fault}"),
        }
    }
}

impl std::error::Error for ServantError {}

/// Runs the servant that `arguments` (those after `quorba servant`) name.
///
/// # Errors
/// [`ServantError`].
pub fn servant_main(arguments: impl IntoIterator<Item = OsString>) -> Result<(), ServantError> {
    let name = OsString::from("quorba servant");
    let servant = Servant::try_parse_from(std::iter::once(name).chain(arguments))
        .map_err(ServantError::Usage)?;
    match servant.role {
        Role::Bank(flags) => {
            let address = SocketAddr::new(flags.host, flags.port);
            let delay = Duration::from_micros(flags.delay_us);
            let faults = Faults { delay, crash_after: flags.crash_after };
            let doing = format!("serve a bank at {address}");
            bank::server::serve(address, faults)
                .map_err(|source| ServantError::System { doing, source })
        }
        Role::Clock(flags) => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, flags.port));
            let doing = format!("serve a clock at {address}");
            clock::serve(address, flags.time.as_deref())
                .map_err(|source| ServantError::System { doing, source })
        }
        Role::Shop(ShopFlags { port, bank, partner }) => {
            let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
            let doing = format!("serve a shop at {address}");
            shop::serve(address, &bank, partner.as_ref())
                .map_err(|source| ServantError::System { doing, source })
        }
        Role::Load(flags) => run_load(flags),
        Role::Reaper => processes::reap_when_orphaned()
            .map_err(|source| ServantError::System { doing: "clear up".to_owned(), source }),
    }
}

fn run_load(flags: LoadFlags) -> Result<(), ServantError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let doing = || "listen for signals".to_owned();
        flag::register(signal, Arc::clone(&stop))
            .map_err(|source| ServantError::System { doing: doing(), source })?;
    }
    let options = LoadOptions {
        reference: flags.reference,
        clients: flags.clients.max(1),
        calls_per_s: flags.rate,
        accounts: flags.accounts,
        oneway_percent: flags.oneway_share,
        seed: flags.seed,
        name: flags.name,
        ft_request: flags.ft_request,
        call_timeout: Duration::from_millis(flags.timeout_ms),
        record: flags.record,
    };
    let mut load = Load::start(&options).map_err(ServantError::Load)?;
    let time = Duration::try_from_secs_f64(flags.seconds).unwrap_or_default();
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
    }
    let result = load.stop();
    let line = serde_json::to_string(&result.summary()).expect("a summary is plain data");
    println!("{line}");
    match load.record_fault() {
        Some(fault) => Err(ServantError::Record { fault }),
        None => Ok(()),
    }
}
