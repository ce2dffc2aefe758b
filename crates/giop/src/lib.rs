//! CDR, GIOP 1.0 to 1.2, IOR and service contexts as pure data.
