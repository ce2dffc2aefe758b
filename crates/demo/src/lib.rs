//! The built-in bank servant, its load client and the accounting of calls.
