//! A server that follows a script: enough of the protocol for a driver, and every misbehaviour that
//! a test wants, at exactly the statement where it wants it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ceteris_load::{Address, Target};

/// What the server does when an executed statement (or BEGIN and the like) is its turn.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers as a server does.
    Answer,
    /// Answers with this error.
    Error(u16, &'static str),
    /// Answers, but late.
    Late(Duration),
    /// Never answers anything any more.
    Silence,
    /// Closes the connection.
    Close,
    /// Answers, then says why it closes the connection, which nobody asked.
    Farewell,
    /// Sends this instead of an answer.
    Bytes(&'static [u8]),
}

/// The script: what to do with the `n`-th statement (from 0) of a connection, and its text.
pub type Script = dyn Fn(u64, &str) -> Act + Send + Sync;

/// What came to the server's ears.
#[derive(Debug, Default)]
pub struct Heard {
    /// Statements that were answered, by text (prepared ones by theirs).
    pub answered: Mutex<HashMap<String, u64>>,
    /// Answers that were errors, by code.
    pub refused: Mutex<HashMap<u16, u64>>,
    /// Executions that came with the types of their parameters.
    pub typed: AtomicU64,
    /// Statements that were prepared.
    pub prepared: AtomicU64,
    /// Connections that said goodbye.
    pub quit: AtomicU64,
    /// What was answered, in the order of the answers.
    pub log: Mutex<Vec<Logged>>,
    /// Until this instant (CLOCK_MONOTONIC) whoever connects is turned away.
    pub away_until_ns: AtomicU64,
    /// How many were.
    pub turned_away: AtomicU64,
    /// Statements of each connection.
    pub per_connection: Mutex<Vec<u64>>,
}

/// One statement that was answered, by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// Which connection, in the order of their logins.
    pub connection: usize,
    /// When it had been read.
    pub received_ns: u64,
    /// When its answer was about to be written.
    pub answered_ns: u64,
}

pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub struct Scripted {
    pub heard: Arc<Heard>,
    dir: tempfile::TempDir,
}

impl Scripted {
    /// Listens; answers go out in writes of at most `piece` bytes.
    pub fn start(
        piece: usize,
        script: impl Fn(u64, &str) -> Act + Send + Sync + 'static,
    ) -> Scripted {
        Scripted::start_hearing(piece, Arc::default(), script)
    }

    /// The same, for a script that looks at what was heard.
    pub fn start_hearing(
        piece: usize,
        heard: Arc<Heard>,
        script: impl Fn(u64, &str) -> Act + Send + Sync + 'static,
    ) -> Scripted {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let (script, ear): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if monotonic_ns() < ear.away_until_ns.load(Ordering::SeqCst) {
                    ear.turned_away.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let (script, heard) = (Arc::clone(&script), Arc::clone(&ear));
                std::thread::Builder::new()
                    .stack_size(128 * 1024)
                    .spawn(move || {
                        // A driver that hangs up in the middle is none of our concern.
                        let _ = Connection { stream, piece, sequence: 0 }.serve(&*script, &heard);
                    })
                    .unwrap();
            }
        });
        Scripted { heard, dir }
    }

    /// A server that greets everybody with these bytes.
    pub fn greeting(bytes: &'static [u8]) -> Scripted {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.write_all(bytes);
            }
        });
        Scripted { heard: Arc::default(), dir }
    }

    pub fn target(&self) -> Target {
        Target {
            address: Address::Socket(self.dir.path().join("s")),
            user: "somebody".into(),
            password: "something".into(),
            database: "somewhere".into(),
            tls: Default::default(),
        }
    }

    pub fn answered(&self, text: &str) -> u64 {
        self.heard.answered.lock().unwrap().get(text).copied().unwrap_or(0)
    }

    pub fn prepared(&self) -> u64 {
        self.heard.prepared.load(Ordering::Relaxed)
    }

    pub fn refused(&self, code: u16) -> u64 {
        self.heard.refused.lock().unwrap().get(&code).copied().unwrap_or(0)
    }
}

struct Connection {
    stream: UnixStream,
    piece: usize,
    sequence: u8,
}

impl Connection {
    fn serve(&mut self, script: &Script, heard: &Heard) -> io::Result<()> {
        let mut greeting = b"\x0a5.7.0-scripted\0\x01\0\0\0abcdefgh\0".to_vec();
        // Protocol 4.1, transactions, secure connection, connect with a database; plug-ins.
        greeting.extend_from_slice(b"\x08\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0");
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        self.payload(&greeting)?;
        let login = self.command()?;
        assert!(!login.windows(9).any(|bytes| bytes == b"something"), "a password in clear");
        self.ok(0, 2)?;
        let index = {
            let mut connections = heard.per_connection.lock().unwrap();
            connections.push(0);
            connections.len() - 1
        };
        let (mut statements, mut count, mut in_transaction) = (Vec::<String>::new(), 0, false);
        loop {
            let command = self.command()?;
            let text = match command[0] {
                0x01 => {
                    heard.quit.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                0x16 => {
                    let text = String::from_utf8_lossy(&command[1..]).into_owned();
                    let params = text.matches('?').count() as u8;
                    statements.push(text);
                    heard.prepared.fetch_add(1, Ordering::Relaxed);
                    let id = statements.len() as u8;
                    self.payload(&[0, id, 0, 0, 0, 0, 0, params, 0, 0, 0, 0])?;
                    for _ in 0..params {
                        self.payload(b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\x80\0\0\0\0")?;
                    }
                    if params > 0 {
                        self.payload(&[0xfe, 0, 0, 2, 0])?;
                    }
                    continue;
                }
                0x17 => {
                    let text = statements[usize::from(command[1]) - 1].clone();
                    // One parameter: the flag for types stands behind one byte of NULL bits.
                    if text.contains('?') && command[11] == 1 {
                        heard.typed.fetch_add(1, Ordering::Relaxed);
                    }
                    text
                }
                0x03 => String::from_utf8_lossy(&command[1..]).into_owned(),
                other => panic!("command {other}"),
            };
            let received_ns = monotonic_ns();
            let act = script(count, &text);
            count += 1;
            heard.per_connection.lock().unwrap()[index] = count;
            let farewell = matches!(act, Act::Farewell);
            match act {
                Act::Answer | Act::Farewell => {}
                Act::Late(delay) => std::thread::sleep(delay),
                Act::Error(code, message) => {
                    *heard.refused.lock().unwrap().entry(code).or_default() += 1;
                    let [c0, c1] = code.to_le_bytes();
                    self.payload(&[&[0xff, c0, c1][..], b"#HY000", message.as_bytes()].concat())?;
                    continue;
                }
                Act::Silence => {
                    while self.stream.read(&mut [0; 1024])? > 0 {}
                    return Ok(());
                }
                Act::Close => return Ok(()),
                Act::Bytes(bytes) => {
                    self.stream.write_all(bytes)?;
                    continue;
                }
            }
            let answered_ns = monotonic_ns();
            let logged = Logged { connection: index, received_ns, answered_ns };
            heard.log.lock().unwrap().push(logged);
            *heard.answered.lock().unwrap().entry(text.clone()).or_default() += 1;
            match text.split(' ').next().unwrap_or_default() {
                "BEGIN" => in_transaction = true,
                "COMMIT" | "ROLLBACK" => in_transaction = false,
                _ => {}
            }
            let status = 2 | u8::from(in_transaction);
            if text.starts_with("SELECT") {
                self.payload(&[1])?;
                self.payload(b"\x03def\0\0\0\x01c\0\x0c\x3f\0\x0b\0\0\0\x08\0\0\0\0\0")?;
                self.payload(&[0xfe, 0, 0, status, 0])?;
                self.payload(b"\0\0\x07\0\0\0\0\0\0\0")?;
                self.payload(&[0xfe, 0, 0, status, 0])?;
            } else {
                self.ok(u8::from(text.starts_with("UPDATE")), status)?;
            }
            if farewell {
                self.sequence = 0;
                return self.payload(b"\xff\x1d\x04#08S01Server shutdown in progress");
            }
        }
    }

    fn ok(&mut self, affected: u8, status: u8) -> io::Result<()> {
        self.payload(&[0, affected, 0, status, 0, 0, 0])
    }

    fn payload(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut packet = (payload.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        for piece in [&packet, payload].concat().chunks(self.piece) {
            self.stream.write_all(piece)?;
        }
        Ok(())
    }

    fn command(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header)?;
        self.sequence = header[3].wrapping_add(1);
        header[3] = 0;
        let mut payload = vec![0; u32::from_le_bytes(header) as usize];
        self.stream.read_exact(&mut payload)?;
        Ok(payload)
    }
}
