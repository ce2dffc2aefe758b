//! Values of CDR, and the service contexts that are read.

use quorba_giop::cdr::{Reader, Writer};
use quorba_giop::{
    CodeSets, Endian, ExceptionKind, FtRequest, GroupVersion, MessageError, SystemException,
};

/// A limit below what inputs can have, so that it is reached.
const LENGTH_MAX: usize = 1000;

/// What was read.
#[derive(PartialEq, Debug)]
enum Value {
    Number(u64),
    Float(u64),
    Octets(Vec<u8>),
    Text(Vec<u8>),
}

/// Reads the value that an instruction asks for.
fn read(reader: &mut Reader<'_>, instruction: u8) -> Result<Value, MessageError> {
    Ok(match instruction % 12 {
        0 => Value::Number(reader.read_u8("u8")?.into()),
        1 => Value::Number(reader.read_u16("u16")?.into()),
        2 => Value::Number(reader.read_u32("u32")?.into()),
        3 => Value::Number(reader.read_u64("u64")?),
        4 => Value::Number(reader.read_i16("i16")?.cast_unsigned().into()),
        5 => Value::Number(reader.read_i32("i32")?.cast_unsigned().into()),
        6 => Value::Number(reader.read_i64("i64")?.cast_unsigned()),
        7 => Value::Float(reader.read_f64("f64")?.to_bits()),
        8 => Value::Number(reader.read_bool("bool")?.into()),
        9 => Value::Octets(reader.read_octets(LENGTH_MAX, "octets")?.to_vec()),
        10 => Value::Text(reader.read_string(LENGTH_MAX, "string")?.to_vec()),
        _ => Value::Number(reader.read_count(8, LENGTH_MAX, "count")? as u64),
    })
}

fn write(writer: &mut Writer, instruction: u8, value: &Value) {
    match value {
        Value::Float(bits) => writer.write_f64(f64::from_bits(*bits)),
        Value::Octets(octets) => writer.write_octets(octets),
        Value::Text(text) => writer.write_string(text),
        Value::Number(number) => match instruction % 12 {
            0 => writer.write_u8(*number as u8),
            1 => writer.write_u16(*number as u16),
            2 => writer.write_u32(*number as u32),
            3 => writer.write_u64(*number),
            4 => writer.write_i16(*number as i16),
            5 => writer.write_i32(*number as i32),
            6 => writer.write_i64(*number as i64),
            8 => writer.write_bool(*number != 0),
            _ => writer.write_count(*number as usize),
        },
    }
}

fn split(input: &[u8]) -> Option<(Endian, &[u8], &[u8])> {
    let (first, rest) = input.split_first()?;
    let (instructions, data) = rest.split_at(rest.len().min(usize::from(*first >> 1)));
    Some((Endian::from_bit(*first), instructions, data))
}

/// What was read and written is read again as the same.
pub(super) fn values(input: &[u8]) {
    let Some((endian, instructions, data)) = split(input) else { return };
    let mut reader = Reader::new(data, endian);
    let mut writer = Writer::new(endian);
    let mut done = Vec::new();
    for instruction in instructions {
        let before = reader.position();
        let Ok(value) = read(&mut reader, *instruction) else { break };
        assert!(reader.position() > before && reader.position() <= data.len());
        assert_eq!(reader.remaining(), data.len() - reader.position());
        // A count is refused if its items are not there.
        if instruction % 12 != 11 {
            write(&mut writer, *instruction, &value);
            done.push((*instruction, value));
        }
    }
    let bytes = writer.finish();
    let mut reader = Reader::new(&bytes, endian);
    for (instruction, value) in done {
        assert_eq!(read(&mut reader, instruction), Ok(value));
    }
    assert_eq!(reader.remaining(), 0);
}

pub(super) fn decode_values(input: &[u8]) {
    let Some((endian, instructions, data)) = split(input) else { return };
    let mut reader = Reader::new(data, endian);
    for instruction in instructions {
        if read(&mut reader, *instruction).is_err() {
            return;
        }
    }
}

/// Contexts and exceptions are written so that they read as the same.
pub(super) fn contexts(input: &[u8]) {
    for endian in [Endian::Big, Endian::Little] {
        if let Ok(sets) = CodeSets::decode(input) {
            assert_eq!(CodeSets::decode(&sets.encode(endian)), Ok(sets));
        }
        if let Ok(request) = FtRequest::decode(input) {
            assert_eq!(FtRequest::decode(&request.encode(endian)), Ok(request));
        }
        if let Ok(version) = GroupVersion::decode(input) {
            assert_eq!(GroupVersion::decode(&version.encode(endian)), Ok(version));
        }
        if let Ok(mut exception) = SystemException::read(&mut Reader::new(input, endian)) {
            let mut writer = Writer::new(endian);
            exception.write(&mut writer);
            let bytes = writer.finish();
            let again = SystemException::read(&mut Reader::new(&bytes, endian));
            if exception.kind == ExceptionKind::Other {
                // One that no standard has is passed on under the name that is meant for it.
                exception.kind = ExceptionKind::Unknown;
            }
            assert_eq!(again, Ok(exception));
        }
    }
}

pub(super) fn decode_contexts(input: &[u8]) {
    let _ = CodeSets::decode(input);
    let _ = FtRequest::decode(input);
    let _ = GroupVersion::decode(input);
    let _ = SystemException::read(&mut Reader::new(input, Endian::Big));
}
