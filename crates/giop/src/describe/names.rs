//! Names of the numbers that the OMG and ORB vendors gave out.

/// A service context's name (GIOP §13.7).
pub(super) const fn context(id: u32) -> Option<&'static str> {
    Some(match id {
        0 => "TransactionService",
        1 => "CodeSets",
        2 => "ChainBypassCheck",
        3 => "ChainBypassInfo",
        4 => "LogicalThreadId",
        5 => "BI_DIR_IIOP",
        6 => "SendingContextRunTime",
        7 => "INVOCATION_POLICIES",
        8 => "FORWARDED_IDENTITY",
        9 => "UnknownExceptionInfo",
        10 => "RTCorbaPriority",
        11 => "RTCorbaPriorityRange",
        12 => "FT_GROUP_VERSION",
        13 => "FT_REQUEST",
        14 => "ExceptionDetailMessage",
        15 => "SecurityAttributeService",
        16 => "ActivityService",
        17 => "RMICustomMaxStreamFormat",
        // TAO's own.
        30 => "FT_TRANSACTION_DEPTH",
        31 => "FT_SEQUENCE_NUMBER",
        32 => "FT_FORWARD",
        _ => return None,
    })
}

/// A component's name (GIOP §13.6.6).
pub(super) const fn component(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0 => "ORB type",
        1 => "code sets",
        2 => "policies",
        3 => "alternate address",
        5 => "complete object key",
        6 => "endpoint id position",
        12 => "location policy",
        13 => "association options",
        14 => "security name",
        20 => "SSL",
        25 => "Java codebase",
        26 => "transaction policy",
        27 => "FT group",
        28 => "FT primary",
        29 => "FT heartbeat",
        31 => "OTS policy",
        32 => "invocation policy",
        33 => "CSI security mechanisms",
        36 => "TLS security transport",
        38 => "RMI stream format",
        39 => "multicast group",
        40 => "multicast group IIOP",
        0x4154_5402 => "omniORB Unix socket",
        0x4154_5403 => "omniORB persistent id",
        _ => return None,
    })
}

/// A profile's name (GIOP §13.6.2).
pub(super) const fn profile(tag: u32) -> Option<&'static str> {
    Some(match tag {
        0 => "IIOP",
        1 => "multiple components",
        2 => "SCCP",
        3 => "UIPMC multicast",
        _ => return None,
    })
}

/// The name of an ORB that puts its number into references.
pub(super) const fn orb(number: u32) -> Option<&'static str> {
    Some(match number {
        0x4154_5400 => "omniORB",
        0x4a41_4300 => "JacORB",
        0x5441_4f00 => "TAO",
        _ => return None,
    })
}

/// A code set's name in the OSF registry.
pub(super) const fn code_set(number: u32) -> Option<&'static str> {
    Some(match number {
        0x0001_0001 => "ISO 8859-1",
        0x0001_000f => "ISO 8859-15",
        0x0001_0020 => "ISO 646",
        0x0001_0100 => "UCS-2 level 1",
        0x0001_0106 => "UCS-4 level 1",
        0x0001_0109 => "UTF-16",
        0x0501_0001 => "UTF-8",
        _ => return None,
    })
}
