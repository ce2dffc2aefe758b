//! The bank: the same books that the omniORB and the JacORB example keep, in Rust.
//!
//! [`books`] is the state and what each operation does to it, [`text`] its one canonical octet
//! format. [`servant`] puts the books behind plain GIOP, [`ledger`] is the caller's side, and
//! [`server`] the process.
//!
//! What it is not: replicated. A bank server knows nothing of groups; that is the point of it.
//!
//! Invariants: the history is the truth; every call that changes something appends exactly one
//! entry under the caller's reference, and a call that raises appends none.

pub mod books;
pub mod ledger;
pub mod servant;
pub(crate) mod server;
pub mod text;

#[cfg(test)]
mod tests;
