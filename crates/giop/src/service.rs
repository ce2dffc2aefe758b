//! Service context lists (GIOP §13.7), kept unread and in order.

use crate::cdr::{Reader, Writer};
use crate::error::MessageError;
use crate::limits::CONTEXTS_MAX;
use crate::version::Endian;

/// Iterates the contexts of a message as (id, data).
#[derive(Clone, Debug)]
pub struct Contexts<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Contexts<'a> {
    /// Reads and checks a list; `reader` stands behind it afterwards.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        let left = reader.read_count(8, CONTEXTS_MAX, "service contexts")?;
        let contexts = Self { reader: reader.clone(), left };
        for _ in 0..left {
            reader.read_u32("service context id")?;
            reader.read_octets(usize::MAX, "service context data")?;
        }
        Ok(contexts)
    }

    pub(crate) const fn empty() -> Self {
        Contexts { reader: Reader::new(&[], Endian::Big), left: 0 }
    }
}

impl<'a> Iterator for Contexts<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let id = self.reader.read_u32("service context id").ok()?;
        let data = self.reader.read_octets(usize::MAX, "service context data").ok()?;
        Some((id, data))
    }
}

/// Writes a list: `kept` without those of the ids in `dropped`, then `added`, then `padding` if
/// the body needs to keep its alignment.
pub(crate) fn write(
    writer: &mut Writer,
    kept: &Contexts<'_>,
    dropped: &[u32],
    added: &[(u32, &[u8])],
    padding: Option<(u32, &[u8])>,
) {
    let all = || {
        kept.clone()
            .filter(|(id, _)| !dropped.contains(id))
            .chain(added.iter().copied())
            .chain(padding)
    };
    writer.write_count(all().count());
    for (id, data) in all() {
        writer.write_u32(id);
        writer.write_octets(data);
    }
}
