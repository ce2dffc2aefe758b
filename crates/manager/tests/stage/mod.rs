//! A domain that is a table, the way to it, and a manager.
//!
//! What it is not: the table; the simulator has it, too.

pub(crate) mod calls;

use std::cell::RefCell;
use std::rc::Rc;

use quorba_corba::giop::SystemException;
use quorba_corba::{Answer, Arguments, Home, Local, Transport};
use quorba_manager::table::{Defined, Table};
use quorba_manager::{Limits, Manager};

/// A type that the nodes start.
pub(crate) const BANK: &str = "IDL:Bank/Ledger:1.0";

/// A way to a table.
#[derive(Clone, Default)]
pub(crate) struct Way(pub(crate) Rc<RefCell<Table>>);

impl Transport for Way {
    fn invoke(
        &mut self,
        operation: &str,
        arguments: Arguments<'_>,
    ) -> Result<Answer, SystemException> {
        let mut table = self.0.borrow_mut();
        Local::new(&mut *table, b"domain").invoke(operation, arguments)
    }

    fn send(&mut self, operation: &str, arguments: Arguments<'_>) -> Result<(), SystemException> {
        self.invoke(operation, arguments).map(drop)
    }
}

/// The group of the manager itself.
pub(crate) const OWN: &str = "replication-manager";

/// A domain of nodes n1 to n5, with a manager's group on the first three.
pub(crate) fn domain() -> Way {
    let way = Way::default();
    {
        let mut table = way.0.borrow_mut();
        table.types.insert(BANK.to_owned());
        for number in 1..=5 {
            table.nodes.insert(format!("n{number}"), true);
        }
        table.groups.insert(OWN.to_owned(), Defined::default());
    }
    way
}

pub(crate) fn manager(way: &Way) -> Manager<Way> {
    let home = Home { addresses: vec![("n1".to_owned(), 2810)], prefix: Vec::new() };
    Manager::new(way.clone(), OWN, &home, Limits::default())
}
