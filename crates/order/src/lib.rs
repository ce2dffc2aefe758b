//! Totally ordered delivery of opaque payloads and agreed membership: the Totem ring.
