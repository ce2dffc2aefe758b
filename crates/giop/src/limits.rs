//! Every limit on what is believed from a peer.

/// Bytes of a message header (GIOP §15.4.1).
pub const HEADER_BYTES: usize = 12;
/// The largest message unless a connection says otherwise.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a client id, or of a domain id.
pub const CLIENT_ID_BYTES_MAX: usize = 1024;
/// Service contexts of one message.
pub const CONTEXTS_MAX: usize = 256;
/// Bytes of an operation's name.
pub const OPERATION_BYTES_MAX: usize = 4096;
/// Bytes of an object key.
pub const OBJECT_KEY_BYTES_MAX: usize = 64 << 10;
/// Requests of one connection that may be in fragments at once.
pub const FRAGMENTED_REQUESTS_MAX: usize = 16;
/// Profiles of one reference.
pub const PROFILES_MAX: usize = 64;
/// Components of one profile.
pub const COMPONENTS_MAX: usize = 256;
/// Addresses of one corbaloc.
pub const ADDRESSES_MAX: usize = 64;
/// Addresses of one reference that are taken, alternates included.
pub const ENDPOINTS_MAX: usize = 1024;
/// Bytes of a reference's type id.
pub const TYPE_ID_BYTES_MAX: usize = 4096;
/// Bytes of a host name.
pub const HOST_BYTES_MAX: usize = 1024;
/// Bytes of one profile or component.
pub const PROFILE_BYTES_MAX: usize = 256 << 10;
/// Bytes of one reference; stringified, it has twice as many digits.
pub const REFERENCE_BYTES_MAX: usize = 1 << 20;
/// Code sets that a server can convert from and to.
pub const CODE_SETS_MAX: usize = 256;
