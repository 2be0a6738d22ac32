//! The least of a login: as a user without a password, and one prepared statement.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use load::{Address, Target};

use crate::Failed;

trait Stream: Read + Write {}
impl Stream for UnixStream {}
impl Stream for TcpStream {}

/// Logs in and prepares `statement`; the socket, and the server's number for the statement.
pub fn connect(target: &Target, statement: &str) -> Result<(OwnedFd, u32), Failed> {
    match &target.address {
        Address::Socket(path) => {
            let mut stream = UnixStream::connect(path)?;
            let number = log_in(&mut stream, target, statement)?;
            stream.set_nonblocking(true)?;
            Ok((stream.into(), number))
        }
        Address::Tcp(host, port) => {
            let mut stream = TcpStream::connect((host.as_str(), *port))?;
            stream.set_nodelay(true)?;
            let number = log_in(&mut stream, target, statement)?;
            stream.set_nonblocking(true)?;
            Ok((stream.into(), number))
        }
    }
}

fn log_in(stream: &mut dyn Stream, target: &Target, statement: &str) -> Result<u32, Failed> {
    packet(stream)?;
    // Protocol 4.1, with a database, secure connection, plug-in named; 16 MiB; utf8.
    let mut login = 0x0008_820du32.to_le_bytes().to_vec();
    login.extend_from_slice(&0x0100_0000u32.to_le_bytes());
    login.push(33);
    login.extend_from_slice(&[0; 23]);
    login.extend_from_slice(target.user.as_bytes());
    login.extend_from_slice(b"\0\0");
    login.extend_from_slice(target.database.as_bytes());
    login.extend_from_slice(b"\0mysql_native_password\0");
    send(stream, 1, &login)?;
    match packet(stream)?.first() {
        Some(0) => {}
        // A plug-in switch to native: again nothing to say.
        Some(0xfe) => {
            send(stream, 3, b"")?;
            packet(stream)?;
        }
        _ => return Err("the server refused the login".into()),
    }
    send(stream, 0, &[b"\x16", statement.as_bytes()].concat())?;
    let prepared = packet(stream)?;
    let [0, a, b, c, d, columns, _, params, ..] = prepared[..] else {
        return Err("the server refused the statement".into());
    };
    for count in [params, columns] {
        for _ in 0..if count > 0 { count + 1 } else { 0 } {
            packet(stream)?;
        }
    }
    Ok(u32::from_le_bytes([a, b, c, d]))
}

fn packet(stream: &mut dyn Stream) -> Result<Vec<u8>, Failed> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

fn send(stream: &mut dyn Stream, sequence: u8, payload: &[u8]) -> Result<(), Failed> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes[3] = sequence;
    bytes.extend_from_slice(payload);
    Ok(stream.write_all(&bytes)?)
}

/// COM_STMT_EXECUTE with one BIGINT.
pub fn execute(statement: u32, value: u64) -> [u8; 26] {
    let mut bytes = [0; 26];
    bytes[0] = 22;
    bytes[4] = 0x17;
    bytes[5..9].copy_from_slice(&statement.to_le_bytes());
    bytes[10] = 1;
    // NULL bits, then types are sent: one BIGINT.
    bytes[15] = 1;
    bytes[16] = 8;
    bytes[18..26].copy_from_slice(&value.to_le_bytes());
    bytes
}
