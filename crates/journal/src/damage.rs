//! What is wrong with a log that cannot be used, for the operator.
//!
//! Invariant: a text names the file, the place in it, the record, the cause and what happens now.

use crate::format::Seq;
use crate::format::checkpoint::CheckpointFault;
use crate::format::scan::{Fault, Invalid};
use crate::format::segment::{self, SegmentFault};
use std::fmt;

/// Damage of what was durable once: the memory of this disk is doubtful.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Octets before the damage in the file, if it has a place.
    pub offset: Option<u64>,
    /// The record that should be there, if it is one.
    pub seq: Option<Seq>,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A record; everything up to `watermark` was durable.
    Record {
        /// What is wrong with it.
        fault: Fault,
        /// The highest watermark known.
        watermark: Seq,
    },
    /// A segment's header.
    Segment(SegmentFault),
    /// A checkpoint, and the log does not reach back to an older one.
    Checkpoint(CheckpointFault),
    /// The log ends too early: everything up to this record was durable.
    EndsBefore(Seq),
    /// The log goes on with this record.
    GoesOnWith(Seq),
    /// The metadata are missing or cannot be read.
    Metadata(String),
    /// The disk cannot read it.
    Unreadable(String),
    /// Found at an earlier start; the node was not rebuilt since.
    Earlier(String),
}

impl Damage {
    pub(crate) fn record(invalid: &Invalid, watermark: Seq) -> Self {
        Self {
            file: segment::file_name(invalid.segment),
            offset: Some(invalid.offset),
            seq: Some(invalid.seq),
            cause: Cause::Record { fault: invalid.fault, watermark },
        }
    }

    pub(crate) fn of_file(file: &str, cause: Cause) -> Self {
        Self { file: file.to_string(), offset: None, seq: None, cause }
    }

    pub(crate) fn unreadable(file: &str, (offset, error): (u64, std::io::Error)) -> Self {
        let cause = Cause::Unreadable(error.to_string());
        Self { file: file.to_string(), offset: Some(offset), seq: None, cause }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, seq, cause } = self;
        if let Cause::Earlier(text) = cause {
            return write!(f, "not rebuilt since an earlier start found damage: {text}");
        }
        f.write_str(file)?;
        if let Some(offset) = offset {
            write!(f, ", offset {offset}")?;
        }
        if let Some(seq) = seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {cause}. The memory of this disk is not used; its files are set aside as ")?;
        f.write_str("doubtful-*, and the node rebuilds its groups from the other nodes")
    }
}

impl std::error::Error for Damage {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { fault, watermark } => {
                write!(f, "{fault}; records up to {watermark} were durable")
            }
            Self::Segment(fault) => fault.fmt(f),
            Self::Checkpoint(fault) => {
                write!(f, "{fault}, and the log does not reach back to an older one")
            }
            Self::EndsBefore(seq) => {
                write!(f, "the log ends here, but records up to {seq} were durable")
            }
            Self::GoesOnWith(seq) => write!(f, "missing; the log goes on with record {seq}"),
            Self::Metadata(text) => write!(f, "metadata: {text}"),
            Self::Unreadable(text) => write!(f, "cannot be read: {text}"),
            Self::Earlier(text) => f.write_str(text),
        }
    }
}
