//! The streaming decoder: bytes in any pieces, replies out.
//!
//! A reply is a sequence of payloads, a payload a sequence of packets, and any of them may be cut
//! anywhere by the socket. The decoder therefore keeps, between two pieces, where it is: which
//! payload of the reply comes next ([`Stage`]), how much of the current packet is missing, and the
//! first few bytes of the payload in case its meaning was cut. Rows pass through to a [`RowSink`]
//! and are not kept. A payload that lies whole in one piece, which is nearly every one, is decoded
//! where it lies.

use crate::command::MAX_PACKET_PAYLOAD;
use crate::read::length;
use crate::reply::{DecodeError, MESSAGE_BYTES_MAX, Reply, ServerError};

/// Longest prefix of a payload that decides something: an OK packet up to its warnings.
const HEAD_BYTES: usize = 1 + 9 + 9 + 2 + 2;

/// What kind of answer the pending command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// OK, an error or result sets: queries, executions, pings.
    Result,
    /// The description of a prepared statement, or an error.
    Prepared,
}

/// Sees the rows of result sets as they pass by.
pub trait RowSink {
    /// A piece of a row's payload in the encoding of its protocol (text or binary); `end` with the
    /// last piece, which may be empty.
    fn row(&mut self, piece: &[u8], end: bool);

    /// A piece of the definition of a result's column, which precedes the rows; `end` with the
    /// last, which may be empty.
    #[inline]
    fn column(&mut self, _piece: &[u8], _end: bool) {}
}

/// Lets rows pass unseen.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRows;

impl RowSink for NoRows {
    #[inline]
    fn row(&mut self, _piece: &[u8], _end: bool) {}
}

/// What a call of [`Decoder::feed`] came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// All bytes were taken; more are needed.
    NeedMore,
    /// A reply is complete. `used` bytes were taken; what lies behind them belongs to the next.
    Reply {
        /// The reply.
        reply: Reply,
        /// Bytes taken.
        used: usize,
    },
}

/// Which payload comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// None: no command is pending.
    Idle,
    /// The first of an answer.
    First(Expect),
    /// Definitions of a result's columns (`left` of them), which are skipped.
    Columns { left: u16 },
    /// The EOF that ends them.
    ColumnsEnd,
    /// A row, or the EOF or error that ends the rows.
    Rows,
    /// Definitions of a prepared statement's parameters, then (`columns`) of its columns.
    Definitions { left: u16, columns: bool },
    /// The EOF that ends either.
    DefinitionsEnd { columns: bool },
    /// None ever: the input was not the protocol.
    Failed(DecodeError),
}

/// What the current payload is, known from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Not begun.
    Unknown,
    /// Its head decides.
    Head,
    /// An error; its message is kept.
    Error,
    /// A row, shown to the sink.
    Row,
    /// Of no interest.
    Skipped,
}

/// Position in the reply stream of one connection.
#[derive(Debug)]
pub struct Decoder {
    stage: Stage,
    kind: Kind,
    /// Number that the next packet must bear.
    sequence: u8,
    /// The current packet is full, so its payload goes on in the next packet.
    continues: bool,
    /// Bytes of the next packet's header that are here.
    header_len: u8,
    header: [u8; 4],
    /// Bytes of the current payload that are in `head`.
    head_len: u8,
    head: [u8; HEAD_BYTES],
    /// Bytes of the current packet that have not come.
    missing: u32,
    /// A payload is under way.
    inside: bool,
    columns: u16,
    params: u16,
    warnings: u16,
    statement: u32,
    rows: u64,
    /// The error payload under way; bounded, and empty without allocation at all other times.
    error: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder that expects nothing yet.
    pub fn new() -> Decoder {
        Decoder {
            stage: Stage::Idle,
            kind: Kind::Unknown,
            sequence: 0,
            continues: false,
            header_len: 0,
            header: [0; 4],
            head_len: 0,
            head: [0; HEAD_BYTES],
            missing: 0,
            inside: false,
            columns: 0,
            params: 0,
            warnings: 0,
            statement: 0,
            rows: 0,
            error: Vec::new(),
        }
    }

    /// A command was sent whose answer is of kind `expect` and begins with packet `sequence` (as
    /// [`crate::Command::encode`] returned). A decoder that has failed stays failed.
    pub fn expect(&mut self, expect: Expect, sequence: u8) {
        if !matches!(self.stage, Stage::Failed(_)) {
            self.stage = Stage::First(expect);
            self.sequence = sequence;
        }
    }

    /// No reply is pending.
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Takes bytes up to the end of the pending reply; rows go to `rows`.
    ///
    /// # Errors
    /// The bytes are not the protocol. The decoder then refuses everything that follows.
    pub fn feed<S: RowSink>(&mut self, bytes: &[u8], rows: &mut S) -> Result<Step, DecodeError> {
        self.take(bytes, rows).inspect_err(|&error| self.stage = Stage::Failed(error))
    }

    fn take<S: RowSink>(&mut self, bytes: &[u8], rows: &mut S) -> Result<Step, DecodeError> {
        if self.inside || self.header_len > 0 {
            return self.take_pieces(bytes, 0, rows);
        }
        let mut packets = Packets { rest: bytes, sequence: self.sequence };
        let reply = self.take_packets(&mut packets, rows)?;
        self.sequence = packets.sequence;
        let at = bytes.len() - packets.rest.len();
        match reply {
            Some(reply) => Ok(self.complete(reply, at)),
            None if at == bytes.len() && self.stage != Stage::Idle => Ok(Step::NeedMore),
            None => self.take_pieces(bytes, at, rows),
        }
    }

    /// Takes the whole packets that come next, as far as they are what nearly all are: definitions,
    /// rows, and what comes before, between and behind them. Everything else is left to
    /// [`Decoder::take_pieces`], which knows it all and costs several times as much.
    ///
    /// One stage after the other, each in a loop of its own: what a packet is need not be asked
    /// anew for each.
    #[inline]
    fn take_packets<S: RowSink>(
        &mut self,
        packets: &mut Packets<'_>,
        rows: &mut S,
    ) -> Result<Option<Reply>, DecodeError> {
        if let Stage::First(expect) = self.stage {
            let Some(payload) = packets.next_if(|first, _| first != 0xfb) else { return Ok(None) };
            match (expect, payload) {
                (Expect::Result, &[columns @ 1..0xfb]) => self.begin_columns(u16::from(columns)),
                _ => {
                    if let Some(reply) = self.finish_first(expect, payload)? {
                        return Ok(Some(reply));
                    }
                }
            }
        }
        if let Stage::Columns { mut left } = self.stage {
            while left > 0 {
                let Some(definition) = packets.next_if(|first, length| !is_end(first, length))
                else {
                    self.stage = Stage::Columns { left };
                    return Ok(None);
                };
                rows.column(definition, true);
                left -= 1;
            }
            self.stage = Stage::ColumnsEnd;
        }
        if self.stage == Stage::ColumnsEnd {
            if packets.next_if(is_end).is_none() {
                return Ok(None);
            }
            self.stage = Stage::Rows;
        }
        if self.stage == Stage::Rows {
            while let Some(payload) = packets.next_if(|_, _| true) {
                if is_end(payload[0], payload.len()) {
                    return self.end_of_rows(payload).map(Some);
                }
                rows.row(payload, true);
                self.rows += 1;
            }
        }
        Ok(None)
    }

    fn complete(&mut self, reply: Reply, used: usize) -> Step {
        self.stage = if reply.more_follow() { Stage::First(Expect::Result) } else { Stage::Idle };
        Step::Reply { reply, used }
    }

    /// Takes bytes that may begin and end anywhere.
    fn take_pieces<S: RowSink>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        rows: &mut S,
    ) -> Result<Step, DecodeError> {
        loop {
            if at == bytes.len() && !(self.inside && self.missing == 0) {
                return Ok(Step::NeedMore);
            }
            match self.stage {
                Stage::Idle => return Err(DecodeError::Unsolicited),
                Stage::Failed(error) => return Err(error),
                _ => {}
            }
            if !self.inside || self.missing == 0 {
                match self.begin_packet(&bytes[at..])? {
                    Some(used) => at += used,
                    None => return Ok(Step::NeedMore),
                }
            }
            let rest = &bytes[at..];
            let take = rest.len().min(self.missing as usize);
            let piece = &rest[..take];
            at += take;
            self.missing -= take as u32;
            let ends = self.missing == 0 && !self.continues;
            if self.kind == Kind::Unknown && (take > 0 || ends) {
                self.kind = self.classify(piece, ends)?;
            }
            let finished = if self.head_len == 0 && ends && self.kind == Kind::Head {
                // The payload lies whole in this piece.
                self.inside = false;
                self.finish(piece)?
            } else {
                self.pass(piece, ends, rows);
                if !ends {
                    if self.missing == 0 {
                        continue;
                    }
                    return Ok(Step::NeedMore);
                }
                self.inside = false;
                let head = self.head;
                self.finish(&head[..usize::from(self.head_len)])?
            };
            self.kind = Kind::Unknown;
            self.head_len = 0;
            if let Some(reply) = finished {
                return Ok(self.complete(reply, at));
            }
        }
    }

    /// Reads the header of the next packet; `None` if it is not wholly here, else the bytes used.
    fn begin_packet(&mut self, bytes: &[u8]) -> Result<Option<usize>, DecodeError> {
        let held = usize::from(self.header_len);
        let take = bytes.len().min(4 - held);
        self.header[held..held + take].copy_from_slice(&bytes[..take]);
        self.header_len += take as u8;
        if self.header_len < 4 {
            return Ok(None);
        }
        self.header_len = 0;
        let [a, b, c, got] = self.header;
        if got != self.sequence {
            return Err(DecodeError::Sequence { expected: self.sequence, got });
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.missing = u32::from_le_bytes([a, b, c, 0]);
        self.continues = self.missing as usize == MAX_PACKET_PAYLOAD;
        self.inside = true;
        Ok(Some(take))
    }

    /// Tells from its first byte (and its length, where that is needed) what a payload is.
    fn classify(&self, piece: &[u8], ends: bool) -> Result<Kind, DecodeError> {
        let Some(&first) = piece.first() else {
            return Err(DecodeError::Malformed("packet: empty"));
        };
        let length = piece.len() + self.missing as usize;
        let short = !self.continues && length < 9;
        debug_assert!(!ends || self.missing == 0);
        match self.stage {
            Stage::First(_) => match first {
                0xff => Ok(Kind::Error),
                0xfb => Err(DecodeError::LocalInfile),
                _ => Ok(Kind::Head),
            },
            Stage::Rows => match first {
                0xff => Ok(Kind::Error),
                0xfe if short => Ok(Kind::Head),
                _ => Ok(Kind::Row),
            },
            Stage::ColumnsEnd | Stage::DefinitionsEnd { .. } => match first {
                0xff => Ok(Kind::Error),
                0xfe if short => Ok(Kind::Head),
                _ => Err(DecodeError::Malformed("end of definitions")),
            },
            Stage::Columns { .. } | Stage::Definitions { .. } => match first {
                0xff => Ok(Kind::Error),
                // A definition begins with the length of a short name.
                0xfe if short => Err(DecodeError::Malformed("definitions: too few")),
                _ => Ok(Kind::Skipped),
            },
            Stage::Idle => Err(DecodeError::Unsolicited),
            Stage::Failed(error) => Err(error),
        }
    }

    /// Lets a piece of a payload pass, keeping what will be needed of it.
    fn pass<S: RowSink>(&mut self, piece: &[u8], ends: bool, rows: &mut S) {
        match self.kind {
            Kind::Row => rows.row(piece, ends),
            Kind::Skipped if matches!(self.stage, Stage::Columns { .. }) => {
                rows.column(piece, ends);
            }
            Kind::Skipped | Kind::Unknown => {}
            Kind::Head => {
                let held = usize::from(self.head_len);
                let take = piece.len().min(HEAD_BYTES - held);
                self.head[held..held + take].copy_from_slice(&piece[..take]);
                self.head_len += take as u8;
            }
            Kind::Error => {
                // 0xff, the code, `#` and the state come before the message.
                let room = (9 + MESSAGE_BYTES_MAX).saturating_sub(self.error.len());
                self.error.extend_from_slice(&piece[..piece.len().min(room)]);
            }
        }
    }

    /// A payload is complete; `head` is its beginning where its kind is [`Kind::Head`].
    fn finish(&mut self, head: &[u8]) -> Result<Option<Reply>, DecodeError> {
        if self.kind == Kind::Error {
            let error = std::mem::take(&mut self.error);
            return Ok(Some(Reply::Err(Box::new(ServerError::from_payload(&error)?))));
        }
        match self.stage {
            Stage::First(expect) => self.finish_first(expect, head),
            Stage::Columns { left } => {
                self.stage =
                    if left > 1 { Stage::Columns { left: left - 1 } } else { Stage::ColumnsEnd };
                Ok(None)
            }
            Stage::ColumnsEnd => {
                self.stage = Stage::Rows;
                Ok(None)
            }
            Stage::Rows if self.kind == Kind::Row => {
                self.rows += 1;
                Ok(None)
            }
            Stage::Rows => self.end_of_rows(head).map(Some),
            Stage::Definitions { left, columns } => {
                self.stage = if left > 1 {
                    Stage::Definitions { left: left - 1, columns }
                } else {
                    Stage::DefinitionsEnd { columns }
                };
                Ok(None)
            }
            Stage::DefinitionsEnd { columns: false } if self.columns > 0 => {
                self.stage = Stage::Definitions { left: self.columns, columns: true };
                Ok(None)
            }
            Stage::DefinitionsEnd { .. } => Ok(Some(self.prepared())),
            Stage::Idle => Err(DecodeError::Unsolicited),
            Stage::Failed(error) => Err(error),
        }
    }

    /// The EOF behind the rows.
    fn end_of_rows(&self, head: &[u8]) -> Result<Reply, DecodeError> {
        let &[_, w0, w1, s0, s1, ..] = head else {
            return Err(DecodeError::Malformed("end of rows"));
        };
        Ok(Reply::ResultSet {
            columns: self.columns,
            rows: self.rows,
            status: u16::from_le_bytes([s0, s1]),
            warnings: u16::from_le_bytes([w0, w1]),
        })
    }

    fn finish_first(&mut self, expect: Expect, head: &[u8]) -> Result<Option<Reply>, DecodeError> {
        match (expect, head) {
            (Expect::Result, [0, rest @ ..]) => ok(rest).map(Some),
            (Expect::Result, _) => {
                let mut rest = head;
                let columns = length(&mut rest)
                    .and_then(|count| u16::try_from(count).ok())
                    .filter(|&count| count > 0 && rest.is_empty())
                    .ok_or(DecodeError::Malformed("column count"))?;
                self.begin_columns(columns);
                Ok(None)
            }
            (Expect::Prepared, &[0, i0, i1, i2, i3, c0, c1, p0, p1, ref rest @ ..]) => {
                self.statement = u32::from_le_bytes([i0, i1, i2, i3]);
                self.columns = u16::from_le_bytes([c0, c1]);
                self.params = u16::from_le_bytes([p0, p1]);
                self.warnings = match *rest {
                    [_, w0, w1, ..] => u16::from_le_bytes([w0, w1]),
                    _ => 0,
                };
                self.stage = match (self.params, self.columns) {
                    (0, 0) => return Ok(Some(self.prepared())),
                    (0, left) => Stage::Definitions { left, columns: true },
                    (left, _) => Stage::Definitions { left, columns: false },
                };
                Ok(None)
            }
            (Expect::Prepared, _) => Err(DecodeError::Malformed("answer to prepare")),
        }
    }

    #[inline]
    fn begin_columns(&mut self, columns: u16) {
        (self.columns, self.rows) = (columns, 0);
        self.stage = Stage::Columns { left: columns };
    }

    fn prepared(&self) -> Reply {
        Reply::Prepared {
            statement: self.statement,
            columns: self.columns,
            params: self.params,
            warnings: self.warnings,
        }
    }
}

/// A payload that begins so and is so long ends definitions or rows.
#[inline]
fn is_end(first: u8, length: usize) -> bool {
    first == 0xfe && length < 9
}

/// The whole packets that a piece of input begins with.
struct Packets<'a> {
    rest: &'a [u8],
    /// Number that the next must bear.
    sequence: u8,
}

impl<'a> Packets<'a> {
    /// Takes the next if it is whole and not empty, the only one of its payload, in order, no error,
    /// and wanted, as its first byte and its length tell; else it stays.
    #[inline]
    fn next_if(&mut self, wanted: impl Fn(u8, usize) -> bool) -> Option<&'a [u8]> {
        let (&[a, b, c, sequence], behind) = self.rest.split_first_chunk()?;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (payload, behind) = behind.split_at_checked(length)?;
        let &first = payload.first()?;
        if sequence != self.sequence
            || length == MAX_PACKET_PAYLOAD
            || first == 0xff
            || !wanted(first, length)
        {
            return None;
        }
        self.rest = behind;
        self.sequence = sequence.wrapping_add(1);
        Some(payload)
    }
}

/// An OK payload behind its first byte.
fn ok(mut rest: &[u8]) -> Result<Reply, DecodeError> {
    const MALFORMED: DecodeError = DecodeError::Malformed("OK");
    let affected_rows = length(&mut rest).ok_or(MALFORMED)?;
    let last_insert_id = length(&mut rest).ok_or(MALFORMED)?;
    let &[s0, s1, w0, w1, ..] = rest else { return Err(MALFORMED) };
    Ok(Reply::Ok {
        affected_rows,
        last_insert_id,
        status: u16::from_le_bytes([s0, s1]),
        warnings: u16::from_le_bytes([w0, w1]),
    })
}
