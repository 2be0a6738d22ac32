//! The decoder against well-formed, cut, and hostile streams.
#![allow(clippy::unwrap_used)]

use ceteris_wire::{
    DecodeError, Decoder, Expect, MAX_PACKET_PAYLOAD, MESSAGE_BYTES_MAX, NoRows, Reply, RowSink,
    Step, status,
};
use proptest::prelude::*;

/// Keeps rows, to compare what two ways of cutting a stream show.
#[derive(Debug, Default, PartialEq)]
struct Rows {
    whole: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl RowSink for Rows {
    fn row(&mut self, piece: &[u8], end: bool) {
        self.open.extend_from_slice(piece);
        if end {
            self.whole.push(std::mem::take(&mut self.open));
        }
    }
}

/// Writes packets with running sequence numbers, as a server does.
#[derive(Default)]
struct Server {
    bytes: Vec<u8>,
    sequence: u8,
}

impl Server {
    fn answering() -> Server {
        Server { bytes: Vec::new(), sequence: 1 }
    }

    fn payload(mut self, payload: &[u8]) -> Server {
        let mut rest = payload;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(MAX_PACKET_PAYLOAD));
            self.bytes.extend_from_slice(&(piece.len() as u32).to_le_bytes()[..3]);
            self.bytes.push(self.sequence);
            self.bytes.extend_from_slice(piece);
            self.sequence = self.sequence.wrapping_add(1);
            rest = behind;
            if piece.len() < MAX_PACKET_PAYLOAD {
                return self;
            }
        }
    }

    fn eof(self, status: u16, warnings: u16) -> Server {
        let ([w0, w1], [s0, s1]) = (warnings.to_le_bytes(), status.to_le_bytes());
        self.payload(&[0xfe, w0, w1, s0, s1])
    }

    fn ok(self, affected: u8, insert_id: u8, status: u16) -> Server {
        let [s0, s1] = status.to_le_bytes();
        self.payload(&[0, affected, insert_id, s0, s1, 3, 0])
    }

    fn result_set(mut self, columns: u8, rows: &[Vec<u8>], status: u16) -> Server {
        self = self.payload(&[columns]);
        for _ in 0..columns {
            self =
                self.payload(b"\x03def\x00\x00\x00\x01c\x00\x0c\x2d\x00\xff\0\0\0\x03\0\0\0\0\0");
        }
        self = self.eof(status, 0);
        for row in rows {
            self = self.payload(row);
        }
        self.eof(status, 2)
    }
}

type Seen = (Vec<Reply>, Result<(), DecodeError>, Rows);

/// Feeds `bytes` cut into pieces at `cuts`; stops at the first error or when nothing is pending.
fn decode(expect: Expect, bytes: &[u8], cuts: &[usize]) -> Seen {
    let mut decoder = Decoder::new();
    decoder.expect(expect, 1);
    let (mut replies, mut rows) = (Vec::new(), Rows::default());
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut start = 0;
    for end in ends {
        let mut piece = &bytes[start..end];
        start = end;
        loop {
            match decoder.feed(piece, &mut rows) {
                Ok(Step::NeedMore) => break,
                Ok(Step::Reply { reply, used }) => {
                    replies.push(reply);
                    piece = &piece[used..];
                }
                Err(error) => return (replies, Err(error), rows),
            }
        }
    }
    (replies, Ok(()), rows)
}

#[test]
fn ok_is_golden() {
    let bytes = [7, 0, 0, 1, 0, 1, 2, 3, 0, 4, 0];
    let ok = Reply::Ok {
        affected_rows: 1,
        last_insert_id: 2,
        status: status::IN_TRANS | 2,
        warnings: 4,
    };
    assert_eq!(decode(Expect::Result, &bytes, &[]), (vec![ok], Ok(()), Rows::default()));
}

#[test]
fn ok_with_long_integers() {
    let mut payload = vec![0, 0xfc, 0x34, 0x12, 0xfe];
    payload.extend_from_slice(&u64::MAX.to_le_bytes());
    payload.extend_from_slice(&[0, 0, 0, 0]);
    payload.extend_from_slice(b"info that is longer than the head which is kept of a payload");
    let bytes = Server::answering().payload(&payload).bytes;
    let ok = Reply::Ok { affected_rows: 0x1234, last_insert_id: u64::MAX, status: 0, warnings: 0 };
    assert_eq!(decode(Expect::Result, &bytes, &[]).0, vec![ok.clone()]);
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(decode(Expect::Result, &bytes, &every).0, [ok]);
}

#[test]
fn errors_keep_code_state_and_a_bounded_message() {
    let bytes = Server::answering().payload(b"\xff\xbd\x04#40001Deadlock found").bytes;
    let (replies, end, _) = decode(Expect::Result, &bytes, &[6, 8]);
    assert_eq!(end, Ok(()));
    let [Reply::Err(error)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(error.to_string(), "error 1213 (40001): Deadlock found");

    let long = [b"\xff\x10\x04#08004".as_slice(), &[b'm'; 100_000]].concat();
    let bytes = Server::answering().payload(&long).bytes;
    let (replies, ..) = decode(Expect::Prepared, &bytes, &[100, 5000, 90_000]);
    let [Reply::Err(error)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(error.message.len(), MESSAGE_BYTES_MAX);

    let bytes = Server::answering().payload(b"\xff\x10\x04Too many").bytes;
    let (replies, ..) = decode(Expect::Result, &bytes, &[]);
    let [Reply::Err(error)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("HY000", "Too many"));
}

#[test]
fn an_error_may_end_rows() {
    let bytes = Server::answering()
        .payload(&[1])
        .payload(b"\x03def")
        .eof(0, 0)
        .payload(b"\0\0row")
        .payload(b"\xff\x25\x05#70100killed")
        .bytes;
    let (replies, end, rows) = decode(Expect::Result, &bytes, &[]);
    assert_eq!((end, rows.whole.len()), (Ok(()), 1));
    assert!(matches!(&replies[..], [Reply::Err(error)] if error.code == 1317));
}

#[test]
fn result_sets_follow_each_other() {
    let bytes = Server::answering()
        .result_set(2, &[b"\x01a".to_vec()], status::MORE_RESULTS_EXIST)
        .result_set(1, &[], status::MORE_RESULTS_EXIST)
        .ok(0, 0, 0)
        .bytes;
    let (replies, end, rows) = decode(Expect::Result, &bytes, &[]);
    assert_eq!((replies.len(), end, rows.whole.len()), (3, Ok(()), 1));
    assert!(matches!(replies[0], Reply::ResultSet { columns: 2, rows: 1, warnings: 2, .. }));
    assert!(matches!(replies[1], Reply::ResultSet { columns: 1, rows: 0, .. }));
    assert!(!replies[2].more_follow());
}

#[test]
fn prepared_statements_with_and_without_definitions() {
    for (columns, params) in [(0u8, 0u8), (0, 2), (3, 0), (1, 4)] {
        let mut server =
            Server::answering().payload(&[0, 9, 1, 0, 0, columns, 0, params, 0, 0, 5, 0]);
        for count in [params, columns] {
            for _ in 0..count {
                server = server.payload(b"\x03def\0\0\0\x01?\0");
            }
            if count > 0 {
                server = server.eof(2, 0);
            }
        }
        let expected = Reply::Prepared {
            statement: 0x109,
            columns: columns.into(),
            params: params.into(),
            warnings: 5,
        };
        let every: Vec<usize> = (0..server.bytes.len()).collect();
        assert_eq!(decode(Expect::Prepared, &server.bytes, &[]).0, vec![expected.clone()]);
        assert_eq!(decode(Expect::Prepared, &server.bytes, &every).0, [expected]);
    }
}

#[test]
fn rows_of_sixteen_mebibytes_go_on_in_the_next_packet() {
    for length in [MAX_PACKET_PAYLOAD - 1, MAX_PACKET_PAYLOAD, MAX_PACKET_PAYLOAD + 5] {
        // A first byte of 0xfe is an EOF only in a short packet.
        let mut row = vec![0x61; length];
        row[0] = 0xfe;
        let bytes = Server::answering().result_set(1, &[row.clone(), b"\x01b".to_vec()], 0).bytes;
        let (replies, end, rows) = decode(Expect::Result, &bytes, &[1000, 0xff_ffff + 60]);
        assert_eq!(end, Ok(()));
        assert!(matches!(replies[..], [Reply::ResultSet { rows: 2, .. }]));
        assert!(rows.whole[0] == row && rows.whole[1] == b"\x01b");
    }
}

#[test]
fn what_is_not_the_protocol_is_refused_for_good() {
    let refused = |expect, bytes: &[u8]| decode(expect, bytes, &[]).1.unwrap_err();
    let payload = |payload: &[u8]| Server::answering().payload(payload).bytes;
    assert_eq!(
        refused(Expect::Result, &[1, 0, 0, 7, 0]),
        DecodeError::Sequence { expected: 1, got: 7 }
    );
    assert_eq!(refused(Expect::Result, &payload(b"\xfb/etc/passwd")), DecodeError::LocalInfile);
    for bad in [&b""[..], b"\0", b"\0\x01\x01\0", b"\xfe\0\0\0\0", b"\x02\x02", b"\xfd\0\0\x01"] {
        let error = refused(Expect::Result, &payload(bad));
        assert!(matches!(error, DecodeError::Malformed(_)), "{bad:?}: {error}");
    }
    assert!(matches!(refused(Expect::Prepared, &payload(b"\x05")), DecodeError::Malformed(_)));
    assert!(matches!(refused(Expect::Result, &payload(b"\xff")), DecodeError::Malformed(_)));

    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(&[1], &mut NoRows), Err(DecodeError::Unsolicited));
    decoder.expect(Expect::Result, 1);
    assert_eq!(decoder.feed(&[1], &mut NoRows), Err(DecodeError::Unsolicited));
}

#[test]
fn a_connection_costs_tens_of_bytes() {
    assert!(size_of::<Decoder>() <= 128, "{}", size_of::<Decoder>());
}

/// A reply stream as a server may write it, with what kind of command it answers.
fn streams() -> impl Strategy<Value = (Expect, Vec<u8>)> {
    let row = prop::collection::vec(any::<u8>(), 1..40).prop_map(|mut row| {
        row[0] &= 0x7f; // neither an EOF nor an error
        row
    });
    let results = prop::collection::vec((1u8..5, prop::collection::vec(row, 0..6)), 0..3);
    let last = prop_oneof![
        (any::<u8>(), any::<u16>()).prop_map(|(rows, status)| (Some(rows & 0x7f), status)),
        any::<u16>().prop_map(|code| (None, code)),
    ];
    let queries = (results, last).prop_map(|(results, (affected, word))| {
        let mut server = Server::answering();
        for (columns, rows) in results {
            server = server.result_set(columns, &rows, status::MORE_RESULTS_EXIST);
        }
        let server = match affected {
            Some(rows) => server.ok(rows, 0, word & !status::MORE_RESULTS_EXIST),
            None => {
                let [c0, c1] = word.to_le_bytes();
                server.payload(&[&[0xff, c0, c1][..], b"#HY000no"].concat())
            }
        };
        (Expect::Result, server.bytes)
    });
    let prepared = (0u8..4, 0u8..4).prop_map(|(columns, params)| {
        let mut server =
            Server::answering().payload(&[0, 1, 0, 0, 0, columns, 0, params, 0, 0, 0, 0]);
        for count in [params, columns].into_iter().filter(|&count| count > 0) {
            for _ in 0..count {
                server = server.payload(b"\x03def\x00\x01");
            }
            server = server.eof(0, 0);
        }
        (Expect::Prepared, server.bytes)
    });
    prop_oneof![queries, prepared]
}

fn expectations() -> impl Strategy<Value = Expect> {
    prop_oneof![Just(Expect::Result), Just(Expect::Prepared)]
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_replies(
        (expect, bytes) in streams(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let whole = decode(expect, &bytes, &[]);
        prop_assert_eq!(&whole.1, &Ok(()));
        prop_assert!(whole.0.last().is_some_and(|reply| !reply.more_follow()));
        prop_assert_eq!(&decode(expect, &bytes, &cuts), &whole);
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&decode(expect, &bytes, &every), &whole);
    }

    #[test]
    fn damage_is_seen_alike_however_it_is_cut(
        (expect, mut bytes) in streams(),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let (replies, end, _) = decode(expect, &bytes, &[]);
        let cut = decode(expect, &bytes, &cuts);
        prop_assert_eq!((replies, end), (cut.0, cut.1));
    }

    #[test]
    fn noise_never_panics(
        expect in expectations(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        // Also with a header that lets the noise through to the payload.
        let framed = Server::answering().payload(&bytes).bytes;
        for bytes in [bytes, framed] {
            let (replies, end, rows) = decode(expect, &bytes, &cuts);
            prop_assert!(replies.len() <= bytes.len());
            prop_assert!(rows.whole.iter().map(Vec::len).sum::<usize>() <= bytes.len());
            if let Err(error) = end {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
