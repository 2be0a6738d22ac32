//! Commands, encoded into the caller's buffer.
//!
//! One buffer per thread is cleared and filled again for every statement; encoding never allocates
//! once that buffer has grown to the longest command.

/// Bytes of payload that one packet carries; a payload of this length or more continues in the
/// next packet.
pub const MAX_PACKET_PAYLOAD: usize = 0xff_ffff;

const COM_QUIT: u8 = 0x01;
pub(crate) const COM_QUERY: u8 = 0x03;
const COM_PING: u8 = 0x0e;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_CLOSE: u8 = 0x19;

const TYPE_DOUBLE: [u8; 2] = [0x05, 0];
const TYPE_NULL: [u8; 2] = [0x06, 0];
const TYPE_LONGLONG: [u8; 2] = [0x08, 0];
const TYPE_LONGLONG_UNSIGNED: [u8; 2] = [0x08, 0x80];
const TYPE_VAR_STRING: [u8; 2] = [0xfd, 0];

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Param<'a> {
    /// SQL NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number.
    Double(f64),
    /// A string, in the character set of the connection.
    Bytes(&'a [u8]),
}

/// A command of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command<'a> {
    /// Runs one statement by its text.
    Query(&'a [u8]),
    /// Prepares one statement.
    Prepare(&'a [u8]),
    /// Runs a prepared statement.
    Execute {
        /// As the server named it in [`crate::Reply::Prepared`].
        statement: u32,
        /// Values for its placeholders, in order.
        params: &'a [Param<'a>],
        /// Sends the types of the parameters too. The server remembers them, so this is needed the
        /// first time and whenever [`types_signature`] changes.
        types: bool,
    },
    /// Forgets a prepared statement; the server sends no reply.
    Close(u32),
    /// Asks for an OK.
    Ping,
    /// Says goodbye; the server closes without a reply.
    Quit,
}

/// A value that differs where two parameter lists need different type lists; `None` for lists too
/// long to be summed up, whose types must always be sent.
pub fn types_signature(params: &[Param<'_>]) -> Option<u64> {
    if params.len() > 20 {
        return None;
    }
    // Three bits each behind a leading one, so that lists of different length differ.
    Some(params.iter().fold(1, |signature, param| {
        let kind = match param {
            Param::Null => 0,
            Param::Int(_) => 1,
            Param::UInt(_) => 2,
            Param::Double(_) => 3,
            Param::Bytes(_) => 4,
        };
        signature << 3 | kind
    }))
}

impl Command<'_> {
    /// Appends the command's packets to `out` and returns the sequence number that the first
    /// packet of the reply bears.
    // Inlined, so that who always encodes the same command does not ask which it is.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) -> u8 {
        match *self {
            Command::Query(text) => encode_bytes(out, COM_QUERY, text),
            Command::Prepare(text) => encode_bytes(out, COM_STMT_PREPARE, text),
            Command::Execute { statement, params, types } => {
                encode_execute(out, statement, params, types)
            }
            Command::Close(statement) => {
                encode_bytes(out, COM_STMT_CLOSE, &statement.to_le_bytes())
            }
            Command::Ping => encode_bytes(out, COM_PING, b""),
            Command::Quit => encode_bytes(out, COM_QUIT, b""),
        }
    }
}

fn encode_bytes(out: &mut Vec<u8>, command: u8, bytes: &[u8]) -> u8 {
    let start = begin_packet(out);
    out.push(command);
    out.extend_from_slice(bytes);
    end_packet(out, start)
}

/// Leaves room for a header; returns where the packet begins.
pub(crate) fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Writes the header of what has been appended since [`begin_packet`], and more where one packet is
/// too small for it; returns the number that comes after the last.
pub(crate) fn end_packet(out: &mut Vec<u8>, start: usize) -> u8 {
    let length = out.len() - start - 4;
    if length < MAX_PACKET_PAYLOAD {
        write_header(&mut out[start..], length, 0);
        1
    } else {
        split(out, start, length)
    }
}

fn write_header(out: &mut [u8], length: usize, sequence: u8) {
    out[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    out[3] = sequence;
}

/// Breaks the one oversized packet at `start` into several; rare, so it may copy.
#[cold]
fn split(out: &mut Vec<u8>, start: usize, length: usize) -> u8 {
    let payload = out.split_off(start + 4);
    out.truncate(start);
    let packets = length / MAX_PACKET_PAYLOAD + 1;
    for sequence in 0..packets {
        let from = sequence * MAX_PACKET_PAYLOAD;
        let piece = &payload[from..length.min(from + MAX_PACKET_PAYLOAD)];
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        write_header(&mut out[at..], piece.len(), sequence as u8);
        out.extend_from_slice(piece);
    }
    packets as u8
}

/// What comes before the values goes out in as few pieces as can be: each costs more than its bytes.
fn encode_execute(out: &mut Vec<u8>, statement: u32, params: &[Param<'_>], types: bool) -> u8 {
    let start = out.len();
    let [s0, s1, s2, s3] = statement.to_le_bytes();
    // Room for the header, the command, no cursor, and the iterations, of which there is always 1.
    out.extend_from_slice(&[0, 0, 0, 0, COM_STMT_EXECUTE, s0, s1, s2, s3, 0, 1, 0, 0, 0]);
    if params.is_empty() {
        return end_packet(out, start);
    }
    let nulls = out.len();
    if params.len() <= 8 {
        out.extend_from_slice(&[0, u8::from(types)]);
    } else {
        out.resize(nulls + params.len().div_ceil(8), 0);
        out.push(u8::from(types));
    }
    if types {
        for param in params {
            out.extend_from_slice(match param {
                Param::Null => &TYPE_NULL,
                Param::Int(_) => &TYPE_LONGLONG,
                Param::UInt(_) => &TYPE_LONGLONG_UNSIGNED,
                Param::Double(_) => &TYPE_DOUBLE,
                Param::Bytes(_) => &TYPE_VAR_STRING,
            });
        }
    }
    for (i, param) in params.iter().enumerate() {
        match *param {
            Param::Null => out[nulls + i / 8] |= 1 << (i % 8),
            Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
            Param::UInt(value) => out.extend_from_slice(&value.to_le_bytes()),
            Param::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Param::Bytes(value) => {
                encode_length(out, value.len() as u64);
                out.extend_from_slice(value);
            }
        }
    }
    end_packet(out, start)
}

fn encode_length(out: &mut Vec<u8>, length: u64) {
    let bytes = length.to_le_bytes();
    match length {
        0..=250 => out.push(bytes[0]),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(command: Command<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(command.encode(&mut out), 1);
        out
    }

    #[test]
    fn short_commands_are_golden() {
        assert_eq!(encoded(Command::Ping), [1, 0, 0, 0, 0x0e]);
        assert_eq!(encoded(Command::Quit), [1, 0, 0, 0, 0x01]);
        assert_eq!(encoded(Command::Close(0x0102)), [5, 0, 0, 0, 0x19, 2, 1, 0, 0]);
        assert_eq!(encoded(Command::Query(b"BEGIN")), *b"\x06\0\0\0\x03BEGIN");
        assert_eq!(encoded(Command::Prepare(b"DO ?")), *b"\x05\0\0\0\x16DO ?");
    }

    #[test]
    fn execute_is_golden_with_and_without_types() {
        let params = [Param::Int(-2), Param::Null, Param::Bytes(b"ab"), Param::UInt(7)];
        let with = encoded(Command::Execute { statement: 9, params: &params, types: true });
        let head = [0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0b0010];
        let types = [1, 8, 0, 6, 0, 0xfd, 0, 8, 0x80];
        let values =
            [0xfe, 255, 255, 255, 255, 255, 255, 255, 2, b'a', b'b', 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(with[4..], [&head[..], &types, &values].concat());
        assert_eq!(usize::from(with[0]), with.len() - 4);
        let without = encoded(Command::Execute { statement: 9, params: &params, types: false });
        assert_eq!(without[4..], [&head[..], &[0], &values].concat());
        let bare = encoded(Command::Execute { statement: 1, params: &[], types: true });
        assert_eq!(bare[4..], [0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn long_strings_carry_their_length() {
        for (length, prefix) in
            [(250, vec![250]), (251, vec![0xfc, 251, 0]), (70_000, vec![0xfd, 0x70, 0x11, 1])]
        {
            let text = vec![b'x'; length];
            let params = [Param::Bytes(&text)];
            let out = encoded(Command::Execute { statement: 1, params: &params, types: false });
            assert_eq!(out[16..16 + prefix.len()], prefix);
            assert_eq!(out.len(), 16 + prefix.len() + length);
        }
    }

    #[test]
    fn payloads_of_sixteen_mebibytes_are_split() {
        for (length, packets) in
            [(MAX_PACKET_PAYLOAD - 2, 1), (MAX_PACKET_PAYLOAD - 1, 2), (2 * MAX_PACKET_PAYLOAD, 3)]
        {
            let text = vec![b'y'; length];
            let mut out = Vec::new();
            assert_eq!(Command::Query(&text).encode(&mut out), packets);
            let (mut at, mut payload, mut sequence) = (0, Vec::new(), 0);
            while at < out.len() {
                let size = u32::from_le_bytes([out[at], out[at + 1], out[at + 2], 0]) as usize;
                assert_eq!(out[at + 3], sequence);
                payload.extend_from_slice(&out[at + 4..at + 4 + size]);
                at += 4 + size;
                sequence += 1;
            }
            assert_eq!(sequence, packets);
            assert_eq!(payload.len(), length + 1);
            assert_eq!(payload[0], COM_QUERY);
            assert!(payload[1..] == text[..]);
        }
    }

    #[test]
    fn signatures_tell_type_lists_apart() {
        let lists: [&[Param<'_>]; 6] = [
            &[],
            &[Param::Null],
            &[Param::Int(1)],
            &[Param::UInt(1)],
            &[Param::Null, Param::Int(1)],
            &[Param::Bytes(b""), Param::Double(0.0)],
        ];
        for (i, a) in lists.iter().enumerate() {
            for (j, b) in lists.iter().enumerate() {
                assert_eq!(types_signature(a) == types_signature(b), i == j);
            }
        }
        assert_eq!(types_signature(&[Param::Int(1)]), types_signature(&[Param::Int(2)]));
        assert_eq!(types_signature(&[Param::Int(1); 21]), None);
    }
}
