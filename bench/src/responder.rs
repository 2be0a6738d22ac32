//! A server that costs nearly nothing: it lets everybody in and answers every statement with the
//! same row. What a driver reaches against it is what the driver can.
//!
//! One thread, pinned, over io_uring, so that its own cost for a statement is small beside the
//! driver's. Answers are those of a point select: one column, one row of 120 characters.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::{Address, Target};

use crate::Failed;
use crate::bare::{LISTENER, Ring};

/// A responder at work.
pub struct Responder {
    dir: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<(), String>>>,
}

impl Responder {
    /// Serves exactly `connections`, from CPU `cpu`; ends when they have gone.
    pub fn start(connections: usize, cpu: usize) -> Result<Responder, Failed> {
        let dir = tempfile::tempdir()?;
        let listener = UnixListener::bind(dir.path().join("s"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut set = rustix::thread::CpuSet::new();
            set.set(cpu);
            let _ = rustix::thread::sched_setaffinity(None, &set);
            serve(&listener, connections, &asked).map_err(|error| error.to_string())
        });
        Ok(Responder { dir, stop, thread: Some(thread) })
    }

    /// How it is reached.
    pub fn target(&self) -> Target {
        Target {
            address: Address::Socket(self.socket()),
            user: "yardstick".into(),
            password: String::new(),
            database: "sbtest".into(),
            tls: load::Tls::default(),
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Result<(), Failed> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(std::thread::JoinHandle::join) {
            Some(Ok(result)) => Ok(result?),
            _ => Err("the responder panicked".into()),
        }
    }
}

fn serve(listener: &UnixListener, connections: usize, stop: &AtomicBool) -> Result<(), Failed> {
    let mut ring = Ring::new(connections)?;
    listener.set_nonblocking(true)?;
    ring.watch(listener)?;
    let replies = Replies::new();
    let (mut come, mut gone) = (0, 0);
    let mut events = Vec::with_capacity(connections);
    while (come < connections || gone < come) && !stop.load(Ordering::Relaxed) {
        ring.wait(&mut events)?;
        for &(token, length) in &events {
            match (token, length) {
                (LISTENER, _) => {
                    while let Ok((mut stream, _)) = listener.accept() {
                        stream.set_nonblocking(false)?;
                        greet(&mut stream)?;
                        let token = ring.add(stream.into())?;
                        ring.exchange(token, b"")?;
                        come += 1;
                    }
                    ring.watch(listener)?;
                }
                (_, 0) => gone += 1,
                _ => ring_answer(&mut ring, token, length, &replies)?,
            }
        }
    }
    Ok(())
}

fn ring_answer(
    ring: &mut Ring,
    token: usize,
    length: usize,
    replies: &Replies,
) -> Result<(), Failed> {
    let bytes = ring.bytes(token, length);
    let mut answer = Vec::new();
    let answer: &[u8] = match bytes.get(4) {
        Some(0x17) if bytes.len() == 4 + usize::from(bytes[0]) => &replies.row,
        _ => {
            // Several commands may come together while a connection is being prepared.
            let mut rest = bytes;
            while rest.len() > 4 {
                let end = 4 + u32::from_le_bytes([rest[0], rest[1], rest[2], 0]) as usize;
                answer.extend_from_slice(replies.to(&rest[4..end.min(rest.len())]));
                rest = rest.get(end..).unwrap_or_default();
            }
            &answer
        }
    };
    ring.exchange(token, answer)
}

/// Definition of the column.
const COLUMN: &[u8] =
    b"\x03def\x06sbtest\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x21\0\x68\x01\0\0\xfe\0\0\0\0\0";
/// Ends definitions and rows.
const EOF: &[u8] = b"\xfe\0\0\x02\0";
/// A row of 120 characters.
const ROW: &[u8] = &{
    let mut row = [b'7'; 3 + 120];
    (row[0], row[1], row[2]) = (0, 0, 120);
    row
};

/// Answers, whole.
struct Replies {
    ok: Vec<u8>,
    prepared: Vec<u8>,
    row: Vec<u8>,
}

impl Replies {
    fn new() -> Replies {
        let param = b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\x80\0\0\0\0";
        let prepared = [&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0][..], param, EOF, COLUMN, EOF];
        Replies {
            ok: packets(&[b"\0\0\0\x02\0\0\0"]),
            prepared: packets(&prepared),
            row: answer(1),
        }
    }

    fn to(&self, command: &[u8]) -> &[u8] {
        match command.first() {
            Some(0x16) => &self.prepared,
            Some(0x17) => &self.row,
            // COM_QUIT and COM_STMT_CLOSE have no answer.
            Some(0x01 | 0x19) => b"",
            _ => &self.ok,
        }
    }
}

/// The answer to a query for `rows` rows as a point select has one.
pub fn answer(rows: usize) -> Vec<u8> {
    let mut payloads = vec![&b"\x01"[..], COLUMN, EOF];
    payloads.resize(payloads.len() + rows, ROW);
    payloads.push(EOF);
    packets(&payloads)
}

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (sequence, payload) in (1u8..).zip(payloads) {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        bytes.extend_from_slice(&[a, b, c, sequence]);
        bytes.extend_from_slice(payload);
    }
    bytes
}

/// Lets one in, whoever it is.
fn greet(stream: &mut UnixStream) -> Result<(), Failed> {
    let mut greeting = b"\x0a5.7.0-null\0\x01\0\0\0abcdefgh\0".to_vec();
    greeting.extend_from_slice(b"\x09\xa2\x21\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0");
    greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    let mut bytes = (greeting.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&greeting);
    stream.write_all(&bytes)?;
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut login = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut login)?;
    stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0")?;
    Ok(())
}
