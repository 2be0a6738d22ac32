//! Handshake, preparation and session against a server that says anything.
//!
//! The first byte says how the server is talked to and in which pieces its bytes arrive; the rest
//! is what it says. Whatever that is, it must end in an error that can be told, the password must
//! stay unsaid, and what the server hears must be in proportion to what it said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use load::hostile::{PASSWORD, Situation, meet};

fuzz_target!(|input: &[u8]| {
    let Some((&choice, says)) = input.split_first() else { return };
    let situation = Situation {
        local: choice & 1 != 0,
        tls: choice & 2 != 0,
        no_password: choice & 4 != 0,
        piece: choice >> 3,
    };
    let ending = meet(situation, says);
    let text = format!("{} {:?} {:?}", ending.error, ending.error, ending.error.hint());
    assert!(!text.contains(PASSWORD));
    let told = ending.heard.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes());
    // A local server may ask for it: nobody listens there.
    assert!(situation.local || !told);
    // An answer costs at least seven bytes, a command of ours less than sixty.
    assert!(ending.heard.len() <= 16 * 1024 + 16 * says.len());
    assert!(ending.transactions as usize <= says.len());
});
