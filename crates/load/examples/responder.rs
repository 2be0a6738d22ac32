//! What the driver costs when the server costs nothing: drives point selects against a responder
//! that answers every command with the same bytes, in a process of its own.
//!
//! `responder serve SOCKET` answers; `responder drive SOCKET CONNECTIONS MS REACTOR` drives it and
//! prints what a statement cost. For counting instructions (`scripts/instructions`), and for
//! profilers; not a benchmark of servers.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ceteris_load::{
    Address, DriveSpec, Engine, ReactorChoice, Rng, Session, Statement, Target, TransactionError,
    Workload, drive,
};
use wire::Param;

struct PointSelect;

impl Workload for PointSelect {
    fn statements(&self) -> Vec<Statement> {
        let text = "SELECT c FROM sbtest1 WHERE id=?".to_owned();
        vec![Statement { text, name: "point_select".to_owned() }]
    }

    async fn transaction(
        &self,
        session: &mut Session,
        _: usize,
        mut rng: Rng,
    ) -> Result<(), TransactionError> {
        let id = rng.next_u64() % 100_000;
        session.execute(0, &[Param::Int(id as i64)]).await.map(|_| ())
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", path] => serve(path),
        ["drive", path, connections, ms, reactor] => {
            let reactor = match reactor {
                "epoll" => ReactorChoice::Epoll,
                "io_uring" => ReactorChoice::IoUring,
                _ => ReactorChoice::Auto,
            };
            drive_it(path, connections.parse().unwrap(), ms.parse().unwrap(), reactor);
        }
        _ => eprintln!("usage: responder serve SOCKET | drive SOCKET CONNECTIONS MS REACTOR"),
    }
}

fn drive_it(path: &str, connections: u32, ms: u64, reactor: ReactorChoice) {
    let target = Target {
        address: Address::Socket(path.into()),
        user: "nobody".into(),
        password: String::new(),
        database: "nowhere".into(),
        tls: Default::default(),
    };
    let spec = DriveSpec {
        targets: vec![target],
        connections,
        threads: Some(1),
        pin: Some(Vec::new()),
        measure: Duration::from_millis(ms),
        engine: Engine { reactor, ..Engine::default() },
        ..DriveSpec::default()
    };
    let report = drive(&PointSelect, &spec, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let each_us = |seconds: f64| seconds * 1e6 / report.transactions as f64;
    println!(
        "{} {} statements, {:.3} us user, {:.3} us system each, clock error p99 {} us max {} us",
        report.generator.reactor,
        report.transactions,
        each_us(report.user_s),
        each_us(report.sys_s),
        report.generator.clock_error.p99 * 1e3,
        report.generator.clock_error.max * 1e3,
    );
}

fn serve(path: &str) {
    let _ = std::fs::remove_file(path);
    for stream in UnixListener::bind(path).unwrap().incoming() {
        let stream = stream.unwrap();
        std::thread::Builder::new()
            .stack_size(64 * 1024)
            // Whoever hangs up is done.
            .spawn(move || drop(answer(stream)))
            .unwrap();
    }
}

fn answer(mut stream: UnixStream) -> std::io::Result<()> {
    let mut greeting = b"\x0a5.7.0-responder\0\x01\0\0\0abcdefgh\0".to_vec();
    greeting.extend_from_slice(b"\x08\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0");
    greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    stream.write_all(&packets(0, &[&greeting]))?;
    let mut command = [0; 4096];
    stream.read_exact(&mut command[..4])?;
    let sequence = command[3];
    let length = usize::from(u16::from_le_bytes([command[0], command[1]]));
    stream.read_exact(&mut command[..length])?;
    let ok = [0, 0, 0, 2, 0, 0, 0];
    stream.write_all(&packets(sequence + 1, &[&ok]))?;
    let end = [0xfe, 0, 0, 2, 0];
    let parameter = b"\x03def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\xfd\x80\0\0\0\0";
    let column =
        b"\x03def\x06sbtest\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x08\0\x78\0\0\0\xfe\0\0\0\0\0";
    let row = [&b"\0\0\x77"[..], &[b'7'; 119]].concat();
    let prepared = [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    let prepared = packets(1, &[&prepared, parameter, &end, column, &end]);
    let rows = packets(1, &[&[1], column, &end, &row, &end]);
    loop {
        let read = stream.read(&mut command)?;
        match command.get(4) {
            Some(_) if read == 0 => return Ok(()),
            Some(0x16) => stream.write_all(&prepared)?,
            Some(0x17) => stream.write_all(&rows)?,
            _ => return Ok(()),
        }
    }
}

fn packets(sequence: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (payload, sequence) in payloads.iter().zip(sequence..) {
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        bytes.push(sequence);
        bytes.extend_from_slice(payload);
    }
    bytes
}
