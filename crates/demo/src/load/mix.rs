//! Which call a client makes next.
//!
//! What it is not: the caller. It draws from a seed, so that two runs make the same calls.
//!
//! Invariant: every reference is `PREFIX CLIENT - NUMBER`, and a number is never drawn twice.

/// A call of `Bank::Ledger`, with an account by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Open { account: u32 },
    Deposit { account: u32, amount: i64 },
    Transfer { from: u32, to: u32, amount: i64 },
    Balance { account: u32 },
    Increment,
    Note,
}

/// Money that every account gets at the beginning.
pub(super) const DEPOSIT_FIRST: i64 = 1_000;
/// The largest amount of a later deposit or transfer.
const AMOUNT_MAX: i64 = 100;

/// The choices of one client.
pub(super) struct Mix {
    choices: fastrand::Rng,
    accounts: u32,
    oneway_percent: u8,
    name: String,
    number: u64,
}

impl Mix {
    pub(super) fn new(
        prefix: &str,
        client: usize,
        accounts: u32,
        oneway_percent: u8,
        seed: u64,
    ) -> Self {
        // Any odd constant spreads the seeds of the clients; this is 2^64 over the golden ratio.
        let seed = seed ^ (client as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            choices: fastrand::Rng::with_seed(seed),
            accounts,
            oneway_percent,
            name: format!("{prefix}{client}"),
            number: 0,
        }
    }

    /// The reference of the next call.
    pub(super) fn reference(&mut self) -> String {
        let reference = format!("{}-{}", self.name, self.number);
        self.number += 1;
        reference
    }

    /// The next call: half of them transfers, and a fifth without an entry in the history.
    pub(super) fn call(&mut self) -> Call {
        if self.choices.u8(..100) < self.oneway_percent {
            return Call::Note;
        }
        if self.accounts == 0 {
            return Call::Increment;
        }
        let account = self.choices.u32(..self.accounts);
        match self.choices.u8(..100) {
            0..50 => {
                let to = self.choices.u32(..self.accounts);
                Call::Transfer { from: account, to, amount: self.amount() }
            }
            50..65 => Call::Deposit { account, amount: self.amount() },
            65..80 => Call::Increment,
            _ => Call::Balance { account },
        }
    }

    fn amount(&mut self) -> i64 {
        self.choices.i64(1..=AMOUNT_MAX)
    }
}

impl Call {
    pub(super) const fn operation(self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Deposit { .. } => "deposit",
            Self::Transfer { .. } => "transfer",
            Self::Balance { .. } => "balance",
            Self::Increment => "increment",
            Self::Note => "note",
        }
    }
}

/// The name of an account.
pub(super) fn account_name(account: u32) -> String {
    format!("acct-{account}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_call_is_made_and_the_seed_decides() {
        let calls = |client| {
            let mut mix = Mix::new("c", client, 10, 5, 1);
            (0..500).map(|_| mix.call()).collect::<Vec<_>>()
        };
        for operation in ["deposit", "transfer", "balance", "increment", "note"] {
            assert!(calls(0).iter().any(|call| call.operation() == operation), "{operation}");
        }
        assert_eq!(calls(3), calls(3));
        assert_ne!(calls(3), calls(4));
    }

    #[test]
    fn references_count_up_per_client() {
        let mut mix = Mix::new("x", 3, 10, 0, 1);
        assert_eq!([mix.reference(), mix.reference()], ["x3-0", "x3-1"]);
    }
}
