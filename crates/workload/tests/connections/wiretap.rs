//! A relay between a driver and its server that keeps every byte that it carries.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub struct Wiretap {
    pub port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Wiretap {
    /// Listens for whom it relays to `server`, until the test ends.
    pub fn before(server: u16) -> Wiretap {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let ways =
                    [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
                for (from, to) in ways {
                    let ear = Arc::clone(&ear);
                    std::thread::spawn(move || carry(from, to, &ear));
                }
            }
        });
        Wiretap { port, heard }
    }

    /// Whether `text` went over the wire since it was last asked.
    pub fn take(&self) -> Heard {
        Heard(std::mem::take(&mut self.heard.lock().unwrap()))
    }
}

pub struct Heard(Vec<u8>);

impl Heard {
    pub fn has(&self, text: &str) -> bool {
        assert!(!self.0.is_empty(), "nothing went over the wire");
        self.0.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, ear: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 4096];
    // Whichever side hangs up ends both; how is not the wiretap's concern.
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        ear.lock().unwrap().extend_from_slice(&bytes[..read]);
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
