//! A connection's whole life against a server that says anything: handshake, preparation, session.
//!
//! For the fuzz target `connection` and for this crate's tests; not part of the crate otherwise.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use wire::{Decoder, NoRows, Param, Step};

use crate::authenticate::authenticate;
use crate::connect::prepare;
use crate::error::DriveError;
use crate::lane::{Lane, Wake};
use crate::packets::PacketStream;
use crate::register::{PROTOCOL, Register};
use crate::scripted_socket::ScriptedSocket;
use crate::session::Session;
use crate::spec::{Address, DriveSpec, Target, Tls, TlsMode};
use crate::starts::Starts;
use crate::timeline::Timeline;
use crate::workload::{Statement, TransactionError};

/// What no server may get to know that has not encrypted.
pub const PASSWORD: &str = "the-password-of-the-hostile-test";

/// Who is talked to, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// Over a Unix socket.
    pub local: bool,
    /// TLS is demanded.
    pub tls: bool,
    /// The user has no password.
    pub no_password: bool,
    /// The server's bytes come in pieces of so many, from 0 for one.
    pub piece: u8,
}

/// How far a server got with us.
#[derive(Debug)]
pub struct Ending {
    /// What it was sent.
    pub heard: Vec<u8>,
    /// Transactions that it answered.
    pub transactions: u64,
    /// What ended it; there is always something, since the server says no more.
    pub error: DriveError,
}

/// Connects to a server that says `says`, whatever it is sent, and drives it to the end.
pub fn meet(situation: Situation, says: &[u8]) -> Ending {
    let address = match situation.local {
        true => Address::Socket("/hostile".into()),
        false => Address::Tcp("hostile".into(), 3306),
    };
    let mode = if situation.tls { TlsMode::Required } else { TlsMode::Disabled };
    let target = Target {
        address: address.clone(),
        user: "somebody".into(),
        password: if situation.no_password { String::new() } else { PASSWORD.into() },
        database: "somewhere".into(),
        tls: Tls { mode, ca: None },
    };
    let piece = 1 + usize::from(situation.piece);
    let socket = ScriptedSocket { says, piece, heard: Vec::new() };
    let mut stream = PacketStream::new(socket, &address);
    let mut transactions = 0;
    let error = live(&mut stream, &target, &mut transactions);
    Ending { heard: stream.into_parts().0.heard, transactions, error }
}

fn live(
    stream: &mut PacketStream<ScriptedSocket<'_>>,
    target: &Target,
    transactions: &mut u64,
) -> DriveError {
    let statement = |text: &str| Statement { text: text.into(), name: "point".into() };
    let statements = [statement("SELECT c FROM t WHERE id = ?"), statement("DO SLEEP(?)")];
    let mut names = Vec::new();
    let lane = match authenticate(stream, target)
        .and_then(|()| prepare(stream, &statements, &mut names))
        .and_then(|()| lane(&statements))
    {
        Ok(lane) => Rc::new(lane),
        Err(error) => return error,
    };
    let session = Session::new(Rc::clone(&lane), names.into(), Rc::new([]));
    let mut task = pin!(transact(session, transactions));
    let mut decoder = Decoder::new();
    loop {
        match task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(TransactionError::Server(source)) => {
                return DriveError::Statement { address: target.address.clone(), source: *source };
            }
            Poll::Ready(error) => return DriveError::Workload(error.to_string()),
            Poll::Pending => {}
        }
        if let Some((expect, sequence)) = lane.take_expected() {
            decoder.expect(expect, sequence);
        }
        if let Err(error) = lane.flush(|bytes| stream.write_all(bytes)) {
            return error;
        }
        loop {
            let arrived = match stream.peek() {
                Ok(arrived) => arrived,
                Err(error) => return error,
            };
            let length = arrived.len();
            match decoder.feed(arrived, &mut NoRows) {
                Ok(Step::NeedMore) => stream.take(length),
                Ok(Step::Reply { reply, used }) => {
                    stream.take(used);
                    lane.wake(Wake::Reply(reply));
                    break;
                }
                Err(error) => return stream.protocol(error),
            }
        }
    }
}

/// Of one connection in a closed loop.
fn lane(statements: &[Statement]) -> Result<Lane, DriveError> {
    let mut names: Vec<String> = PROTOCOL.map(str::to_owned).to_vec();
    let name_of = statements.iter().map(|_| names.len() as u32).collect();
    names.push("point".to_owned());
    let register = Register { kinds: vec!["transaction".to_owned()], names, name_of, targets: 1 };
    let timeline = Arc::new(Timeline::new(&DriveSpec::default())?);
    Lane::new(&register, 1, Starts::new(&timeline, 0, 1, 1, 0))
}

async fn transact(mut session: Session, transactions: &mut u64) -> TransactionError {
    loop {
        match transaction(&mut session).await {
            Ok(()) => *transactions += 1,
            Err(TransactionError::Server(error)) if error.code == 1213 => {
                if let Err(error) = session.rollback().await {
                    return error;
                }
            }
            Err(error) => return error,
        }
    }
}

async fn transaction(session: &mut Session) -> Result<(), TransactionError> {
    session.begin().await?;
    session.execute(0, &[Param::Int(1)]).await?;
    session.execute(1, &[Param::Bytes(b"text")]).await?;
    session.commit().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TCP: Situation = Situation { local: false, tls: false, no_password: false, piece: 255 };
    const SOCKET: Situation = Situation { local: true, ..TCP };

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = sequence;
        [&packet, payload].concat()
    }

    /// A greeting of a server without TLS that begins with `plugin`.
    fn greeting(plugin: &str) -> Vec<u8> {
        let mut payload = b"\x0a8.0.0-hostile\0\x01\0\0\0abcdefgh\0".to_vec();
        payload.extend_from_slice(b"\x08\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0");
        payload.extend_from_slice(b"ijklmnopqrst\0");
        payload.extend_from_slice(plugin.as_bytes());
        payload.push(0);
        packet(0, &payload)
    }

    fn switch(sequence: u8, plugin: &str) -> Vec<u8> {
        packet(sequence, &[b"\xfe", plugin.as_bytes(), b"\0abcdefghijklmnopqrst\0"].concat())
    }

    /// The end, which neither shows nor has told the password.
    fn ending(situation: Situation, says: &[&[u8]]) -> (Ending, String) {
        let ending = meet(situation, &says.concat());
        let source = std::error::Error::source(&ending.error).map(ToString::to_string);
        let text =
            format!("{}: {source:?} {:?} {:?}", ending.error, ending.error, ending.error.hint());
        assert!(!text.contains(PASSWORD), "{text}");
        assert!(situation.local || !heard(&ending, PASSWORD), "the password in clear");
        (ending, text)
    }

    fn heard(ending: &Ending, text: &str) -> bool {
        ending.heard.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }

    const OK: &[u8] = b"\0\0\0\x02\0\0\0";

    fn prepared(name: u8) -> Vec<u8> {
        let mut bytes = packet(1, &[0, name, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
        bytes.extend(packet(2, b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\0\0\0\0\0"));
        bytes.extend(packet(3, b"\xfe\0\0\x02\0"));
        bytes
    }

    #[test]
    fn an_honest_server_is_driven() {
        let ok = packet(1, OK);
        let transaction = ok.repeat(4);
        for piece in [0, 6, 255] {
            let (ending, text) = ending(
                Situation { piece, ..TCP },
                &[
                    &greeting("mysql_native_password"),
                    &packet(2, OK),
                    &prepared(1),
                    &prepared(2),
                    &transaction.repeat(3),
                ],
            );
            assert_eq!(ending.transactions, 3, "{text}");
            assert!(heard(&ending, "somebody") && heard(&ending, "DO SLEEP(?)"));
        }
    }

    #[test]
    fn a_server_that_switches_plug_ins_for_ever_is_left() {
        let mut says = greeting("caching_sha2_password");
        for round in 0..200 {
            // Sequence numbers go round; every second packet is ours.
            says.extend(switch((2 + 2 * round % 256) as u8, "mysql_native_password"));
        }
        let (ending, text) = ending(TCP, &[&says]);
        assert!(text.contains("no end"), "{text}");
        assert!(ending.heard.len() < 4096);
    }

    #[test]
    fn the_password_is_not_given_in_clear() {
        for situation in [TCP, SOCKET] {
            let begin = greeting("mysql_native_password");
            let (ending, text) = ending(situation, &[&begin, &switch(2, "mysql_clear_password")]);
            assert!(text.contains("not sent in clear") && text.contains("use TLS"), "{text}");
            assert!(!heard(&ending, PASSWORD));
        }
        // A socket of this machine is as good as encrypted where the plug-in itself says so.
        let (ending, _) =
            ending(SOCKET, &[&greeting("caching_sha2_password"), &packet(2, b"\x01\x04")]);
        assert!(heard(&ending, PASSWORD));
    }

    #[test]
    fn tls_that_is_not_offered_is_not_done_without() {
        let (ending, text) =
            ending(Situation { tls: true, ..TCP }, &[&greeting("mysql_native_password")]);
        assert!(text.contains("NotOffered") && text.contains("ssl_cert"), "{text}");
        assert_eq!(ending.heard, b"", "nothing was said, not even the user's name");
    }

    #[test]
    fn what_comes_before_tls_does_not_count_as_encrypted() {
        let mut offering = greeting("mysql_native_password");
        // CLIENT_SSL, in the lower half of the capabilities, which follow the version, the
        // connection's number and the first part of the nonce.
        let at = 4 + b"\x0a8.0.0-hostile\0\x01\0\0\0abcdefgh\0".len() + 1;
        offering[at] |= 0x08;
        let tls = Situation { tls: true, ..TCP };
        let (_, text) = ending(tls, &[&offering, &packet(2, OK)]);
        assert!(text.contains("Unsolicited"), "{text}");
        let (ending, text) = ending(tls, &[&offering]);
        assert!(text.contains("closed the connection"), "{text}");
        assert!(!heard(&ending, "somebody") && heard(&ending, "hostile"), "a name for TLS only");
    }

    #[test]
    fn nonsense_is_an_error() {
        let begin = greeting("caching_sha2_password");
        let cases: [(&[&[u8]], &str); 8] = [
            (&[b""], "Connect"),
            (&[b"\0\0\0\0"], "greeting"),
            (&[b"\xff\xff\xff\0"], "too long"),
            (&[&begin, &packet(7, OK)], "Sequence"),
            (&[&begin, &packet(2, b"")], "authentication"),
            (&[&begin, &packet(2, b"\x01\x04"), &packet(4, b"\x01no key")], "RSA public key"),
            (&[&begin, &packet(2, b"\x01\x09")], "caching_sha2_password"),
            (&[&begin, &switch(2, "parsec")], "not known here"),
        ];
        for (says, expected) in cases {
            let (ending, text) = ending(TCP, says);
            assert!(text.contains(expected), "{expected}: {text}");
            assert_eq!(ending.transactions, 0);
        }
        // Whichever byte is another.
        for at in 4..begin.len() {
            for value in [0x00, 0x7f, 0x80, 0x84, 0xff] {
                let mut damaged = begin.clone();
                damaged[at] = value;
                assert_eq!(ending(TCP, &[&damaged]).0.transactions, 0);
            }
        }
        // Wherever it is cut off.
        for end in 0..begin.len() {
            let (_, text) = ending(TCP, &[&begin[..end]]);
            assert!(text.contains("Connect"), "{end}: {text}");
        }
    }
}
