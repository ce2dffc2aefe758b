//! The domain file: parsing, checking, and saying what is wrong with it.
