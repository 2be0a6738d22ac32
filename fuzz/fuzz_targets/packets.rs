//! The packet decoder against arbitrary bytes.
//!
//! The first byte says what is expected (bit 0) and in which pieces the rest arrives (the other
//! bits). However it is cut, the decoder must see the same replies, rows and error, never panic,
//! and never show or keep more than it was given.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{DecodeError, Decoder, Expect, MESSAGE_BYTES_MAX, Reply, RowSink, Step};

#[derive(Default, PartialEq, Debug)]
struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowSink for Rows {
    fn row(&mut self, piece: &[u8], end: bool) {
        self.bytes.extend_from_slice(piece);
        if end {
            self.ends.push(self.bytes.len());
        }
    }
}

type Seen = (Vec<Reply>, Result<(), DecodeError>, Rows);

fn decode(expect: Expect, bytes: &[u8], piece: usize) -> Seen {
    let mut decoder = Decoder::new();
    decoder.expect(expect, 1);
    let (mut replies, mut rows) = (Vec::new(), Rows::default());
    for mut rest in bytes.chunks(piece) {
        loop {
            match decoder.feed(rest, &mut rows) {
                Ok(Step::NeedMore) => break,
                Ok(Step::Reply { reply, used }) => {
                    assert!(used <= rest.len());
                    replies.push(reply);
                    rest = &rest[used..];
                    // As a session does: the next command is on its way already.
                    if decoder.is_idle() {
                        decoder.expect(expect, 1);
                    }
                }
                Err(error) => {
                    assert_eq!(decoder.feed(&[0], &mut rows), Err(error), "failed for good");
                    return (replies, Err(error), rows);
                }
            }
        }
    }
    (replies, Ok(()), rows)
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let expect = if choice & 1 == 0 { Expect::Result } else { Expect::Prepared };
    let whole = decode(expect, bytes, usize::MAX);
    let (replies, end, rows) = decode(expect, bytes, 1 + usize::from(choice >> 1));
    assert_eq!((&replies, &end), (&whole.0, &whole.1));
    assert!(replies.len() <= bytes.len() && rows.bytes.len() <= bytes.len());
    if end.is_ok() {
        // Where the input is refused, one way may have shown more of a last row than the other.
        assert_eq!(rows, whole.2);
    }
    for reply in &replies {
        if let Reply::Err(error) = reply {
            // Each invalid byte may become a replacement character of three.
            assert!(error.message.len() <= 3 * MESSAGE_BYTES_MAX);
        }
    }
});
