//! How many bytes must have come in before a wait for a socket ends.
#![expect(unsafe_code, reason = "setsockopt(SO_RCVLOWAT)")]

use std::os::fd::AsRawFd;

use tokio::net::TcpStream;

/// Bytes that a wait for a long body waits for. Each end of a wait costs some microseconds of system calls and switches, whether
/// 20 KiB came or 200: with 256 KiB the client took 0.78 x the CPU per byte that it took without, over HTTP and over HTTPS. The
/// kernel makes the socket's buffer twice as large as the mark, and no larger marks were worth that memory.
const MARK: usize = 256 << 10;

/// The low-water mark of one socket. Only waits heed it: a read takes what is there, and the end of a connection ends every wait.
#[derive(Debug)]
pub(super) struct LowWater {
    now: usize,
}

impl LowWater {
    /// As a socket is made: any byte ends a wait.
    pub(super) fn new() -> Self {
        Self { now: 1 }
    }

    /// Sets the mark for waits for the next of `left` bytes, which are certain to come unless the connection ends. Where few are
    /// left, any byte ends a wait.
    pub(super) fn set(&mut self, socket: &TcpStream, left: usize) {
        let wanted = if left >= 2 * MARK { MARK } else { 1 };
        if wanted == self.now {
            return;
        }
        let value = libc::c_int::try_from(wanted).unwrap_or(1);
        let len = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default();
        // SAFETY: the socket is open, and the kernel reads one c_int from an address that outlives the call.
        let code = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw const value).cast(),
                len,
            )
        };
        // Where that is refused, waits end as early as before.
        if code == 0 {
            self.now = wanted;
        }
    }
}
