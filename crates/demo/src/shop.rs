//! A shop: a server that calls other servers while it executes a call.
//!
//! What it is not: aware of replication. It calls the object that its command line names, like any
//! client, and tells what the answer was in its own history. Invariants: a call that the other
//! server refuses leaves no order; the orders are text, one line each, and so is its state.

use std::io::{self, Write};
use std::net::SocketAddr;

use quorba_orb::giop::cdr::{Reader, Writer};
use quorba_orb::giop::{Completion, ExceptionKind, SystemException};
use quorba_orb::{
    CallError, Client, ClientOptions, Reference, Reply, Servant, Server, ServerOptions,
    marshal_fault, unknown_operation,
};

use crate::bank::servant::CHECKPOINTABLE_ID;

/// Repository id of the shop's interface.
pub const SHOP_ID: &str = "IDL:Bank/Shop:1.0";
/// Object key of the shop.
pub const SHOP_KEY: &str = "shop";
/// The longest string that a call may carry, in octets.
const STRING_BYTES_MAX: usize = 4096;
/// The largest state, in octets.
const STATE_BYTES_MAX: usize = 64 << 20;

/// The shop.
pub struct Shop {
    /// Where it has purchases booked.
    bank: Client,
    /// Another shop, which calls this one.
    partner: Option<Client>,
    orders: Vec<String>,
}

impl Shop {
    /// A shop whose purchases `bank` books, and that has a `partner`.
    #[must_use]
    pub fn new(bank: &Reference, partner: Option<&Reference>) -> Self {
        // Replicas must hear the same, so none of them gives up on its own.
        let options = || ClientOptions { call_timeout: None, ..ClientOptions::default() };
        let client = |reference: &Reference| Client::new(reference, options());
        Self { bank: client(bank), partner: partner.map(client), orders: Vec::new() }
    }

    /// Two calls to the bank: what the shop has earned, and the number of the purchase.
    fn buy(&mut self, amount: i64, reference: &str) -> Result<(i64, u64), CallError> {
        let balance = self.bank.call("deposit", |out| {
            out.write_string(b"shop");
            out.write_i64(amount);
            out.write_string(reference.as_bytes());
        })?;
        let balance = balance.results().read_i64("balance").map_err(unreadable)?;
        let number = self.bank.call("increment", |out| out.write_string(reference.as_bytes()))?;
        let number = number.results().read_u64("number").map_err(unreadable)?;
        self.orders.push(format!("{reference} {balance} {number}"));
        Ok((balance, number))
    }

    /// Has the partner do the same, `depth` times to and fro: how many shops it went through.
    fn pass_on(&mut self, depth: u32, reference: &str) -> Result<u32, CallError> {
        let shops = match (&mut self.partner, depth) {
            (Some(partner), 1..) => {
                let answer = partner.call("pass_on", |out| {
                    out.write_u32(depth - 1);
                    out.write_string(reference.as_bytes());
                })?;
                answer.results().read_u32("shops").map_err(unreadable)?
            }
            _ => 0,
        };
        self.orders.push(format!("{reference} {shops}"));
        Ok(shops + 1)
    }

    /// Has the partner look at the orders of this shop, in the middle of one of them.
    fn reflect(&mut self, reference: &str) -> Result<u32, CallError> {
        self.orders.push(format!("{reference} begins"));
        let seen = match &mut self.partner {
            Some(partner) => {
                let answer =
                    partner.call("look_back", |out| out.write_string(reference.as_bytes()))?;
                answer.results().read_u32("lines").map_err(unreadable)?
            }
            None => 0,
        };
        self.orders.push(format!("{reference} {seen}"));
        Ok(seen)
    }

    /// Looks at the partner's orders: how many there are.
    fn look_back(&mut self, reference: &str) -> Result<u32, CallError> {
        let lines = match &mut self.partner {
            Some(partner) => {
                let answer = partner.call("orders", |_| {})?;
                let mut results = answer.results();
                let text = results.read_octets(STATE_BYTES_MAX, "orders").map_err(unreadable)?;
                String::from_utf8_lossy(text).lines().count() as u32
            }
            None => 0,
        };
        self.orders.push(format!("{reference} {lines}"));
        Ok(lines)
    }

    fn execute(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), CallError> {
        match operation {
            "buy" => {
                let amount = arguments.read_i64("amount").map_err(unreadable)?;
                let (balance, number) = self.buy(amount, &read_text(arguments)?)?;
                reply.results().write_i64(balance);
                reply.results().write_u64(number);
            }
            "pass_on" => {
                let depth = arguments.read_u32("depth").map_err(unreadable)?;
                let shops = self.pass_on(depth, &read_text(arguments)?)?;
                reply.results().write_u32(shops);
            }
            "reflect" => {
                let seen = self.reflect(&read_text(arguments)?)?;
                reply.results().write_u32(seen);
            }
            "look_back" => {
                let lines = self.look_back(&read_text(arguments)?)?;
                reply.results().write_u32(lines);
            }
            "get_state" | "orders" => {
                reply.results().write_octets(self.orders.join("\n").as_bytes());
            }
            "set_state" => {
                let state = arguments.read_octets(STATE_BYTES_MAX, "state").map_err(unreadable)?;
                let state = String::from_utf8_lossy(state);
                self.orders = state.lines().map(ToOwned::to_owned).collect();
            }
            _ => return Err(CallError::System(unknown_operation())),
        }
        Ok(())
    }
}

impl Servant for Shop {
    fn repository_id(&self) -> &str {
        SHOP_ID
    }

    fn is_a(&self, id: &str) -> bool {
        [SHOP_ID, CHECKPOINTABLE_ID].contains(&id)
    }

    fn dispatch(
        &mut self,
        operation: &str,
        arguments: &mut Reader<'_>,
        reply: &mut Reply,
    ) -> Result<(), SystemException> {
        self.execute(operation, arguments, reply).map_err(|error| match error {
            CallError::System(exception) => exception,
            CallError::User(_) => {
                let (kind, completed) = (ExceptionKind::Unknown, Completion::Yes);
                SystemException { kind, minor: 0, completed }
            }
        })
    }
}

fn unreadable(fault: quorba_orb::giop::MessageError) -> CallError {
    CallError::System(marshal_fault(fault, Completion::No))
}

fn read_text(arguments: &mut Reader<'_>) -> Result<String, CallError> {
    let octets = arguments.read_string(STRING_BYTES_MAX, "reference").map_err(unreadable)?;
    Ok(String::from_utf8_lossy(octets).into_owned())
}

/// A shop, by reference.
pub struct Customer(Client);

impl Customer {
    /// Of the shop that `client` refers to.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// `buy`: the shop's balance at the bank, and the number of the purchase there.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn buy(&mut self, amount: i64, reference: &str) -> Result<(i64, u64), CallError> {
        let answer = self.0.call("buy", |out| {
            out.write_i64(amount);
            out.write_string(reference.as_bytes());
        })?;
        let mut results = answer.results();
        let balance = results.read_i64("balance").map_err(unreadable)?;
        Ok((balance, results.read_u64("number").map_err(unreadable)?))
    }

    /// `pass_on`: how many shops it went through.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn pass_on(&mut self, depth: u32, reference: &str) -> Result<u32, CallError> {
        let answer = self.0.call("pass_on", |out: &mut Writer| {
            out.write_u32(depth);
            out.write_string(reference.as_bytes());
        })?;
        answer.results().read_u32("shops").map_err(unreadable)
    }

    /// `reflect`: how many of the shop's orders its partner has seen meanwhile.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn reflect(&mut self, reference: &str) -> Result<u32, CallError> {
        let answer = self.0.call("reflect", |out| out.write_string(reference.as_bytes()))?;
        answer.results().read_u32("seen").map_err(unreadable)
    }

    /// `orders`, one line each.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn orders(&mut self) -> Result<Vec<String>, CallError> {
        let answer = self.0.call("orders", |_| {})?;
        let mut results = answer.results();
        let text = results.read_octets(STATE_BYTES_MAX, "orders").map_err(unreadable)?;
        Ok(String::from_utf8_lossy(text).lines().map(ToOwned::to_owned).collect())
    }
}

/// Serves a shop at `address` until the process ends.
///
/// # Errors
/// What the system says if it cannot listen there.
pub(crate) fn serve(
    address: SocketAddr,
    bank: &Reference,
    partner: Option<&Reference>,
) -> io::Result<()> {
    let message_bytes_max = STATE_BYTES_MAX;
    let options = ServerOptions { message_bytes_max, ..ServerOptions::default() };
    let server = Server::bind(address, options)?;
    let running = server.with(SHOP_KEY, Shop::new(bank, partner)).start()?;
    let mut out = io::stdout();
    writeln!(out, "READY")?;
    out.flush()?;
    running.serve_forever()
}
