//! A server that is a string of bytes, for tests and for the fuzzer.

use std::io::{self, Read, Write};

/// Answers whatever it is sent with the rest of its bytes, and then hangs up.
pub(crate) struct ScriptedSocket<'a> {
    /// What the server has not said yet.
    pub says: &'a [u8],
    /// Bytes of one read; at least 1.
    pub piece: usize,
    /// What it was sent.
    pub heard: Vec<u8>,
}

impl Read for ScriptedSocket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let piece = self.piece.min(bytes.len()).min(self.says.len());
        let (now, later) = self.says.split_at(piece);
        bytes[..piece].copy_from_slice(now);
        self.says = later;
        Ok(piece)
    }
}

impl Write for ScriptedSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.heard.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
