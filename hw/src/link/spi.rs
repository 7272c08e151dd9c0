//! A link's bytes over SPI, on the host's side. The host is the master and receives a byte for each byte that it sends.
//!
//! A board with nothing to send sends zeros, and a board without power gives zeros or ones, so bytes never stop coming.
//! [`SpiBytes`] keeps those that can belong to a frame, and drops idle bytes once there are more in a row than any
//! frame has.

use super::MOST_FRAME_BYTES;
use super::stream::since_start;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Most bytes of one exchange: the default limit of Linux's spidev module.
pub const EXCHANGE_BYTES: usize = 4096;
/// What a host sends while it only listens; a run of zeros would resync the board.
const LISTENING: u8 = 0xff;
/// Bytes of the first listening exchange and of the longest; each that brings nothing doubles the next.
const LISTENING_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// An SPI master, mode 0, most significant bit first, which selects its slave during an exchange.
pub trait SpiMaster {
    /// Sends at most [`EXCHANGE_BYTES`] bytes and replaces them with the bytes received meanwhile.
    ///
    /// # Errors
    /// The system's.
    fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()>;

    /// Time since an arbitrary start; see [`super::ByteStream::now`].
    fn now(&self) -> Duration {
        since_start()
    }
}

/// Bytes received while others were sent, and how long to listen for more.
#[derive(Debug, Clone)]
pub struct SpiBytes {
    came: VecDeque<u8>,
    /// Idle bytes since the last non-idle byte.
    idle: usize,
    listen: usize,
}

impl Default for SpiBytes {
    fn default() -> SpiBytes {
        SpiBytes { came: VecDeque::new(), idle: MOST_FRAME_BYTES, listen: *LISTENING_BYTES.start() }
    }
}

impl SpiBytes {
    /// Sends all bytes and keeps the received ones.
    ///
    /// # Errors
    /// The master's.
    pub fn send(&mut self, master: &mut impl SpiMaster, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(EXCHANGE_BYTES).try_for_each(|piece| self.exchange(master, piece.to_vec()))
    }

    /// Receives some bytes, like [`super::ByteStream::receive`].
    ///
    /// # Errors
    /// The master's.
    pub fn receive(&mut self, master: &mut impl SpiMaster, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        let begun = master.now();
        while self.came.is_empty() {
            self.exchange(master, vec![LISTENING; self.listen])?;
            if self.came.is_empty() && master.now().saturating_sub(begun) >= timeout {
                return Ok(0);
            }
        }
        let count = bytes.len().min(self.came.len());
        for (byte, came) in bytes.iter_mut().zip(self.came.drain(..count)) {
            *byte = came;
        }
        Ok(count)
    }

    /// Discards all received bytes.
    pub fn clear(&mut self) {
        *self = SpiBytes::default();
    }

    fn exchange(&mut self, master: &mut impl SpiMaster, mut bytes: Vec<u8>) -> io::Result<()> {
        master.exchange(&mut bytes)?;
        let is_idle = |byte: u8| matches!(byte, 0 | LISTENING);
        self.listen = match bytes.iter().all(|byte| is_idle(*byte)) {
            true => (2 * self.listen).min(*LISTENING_BYTES.end()),
            false => *LISTENING_BYTES.start(),
        };
        for byte in bytes {
            self.idle = if is_idle(byte) { self.idle + 1 } else { 0 };
            if self.idle < MOST_FRAME_BYTES {
                self.came.push_back(byte);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slave that sends `says`, then `rest` forever, with a clock of one microsecond per byte.
    struct Slave {
        says: VecDeque<u8>,
        rest: u8,
        heard: Vec<u8>,
    }

    impl SpiMaster for Slave {
        fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()> {
            assert!((1..=EXCHANGE_BYTES).contains(&bytes.len()));
            for byte in bytes {
                self.heard.push(*byte);
                *byte = self.says.pop_front().unwrap_or(self.rest);
            }
            Ok(())
        }

        fn now(&self) -> Duration {
            Duration::from_micros(self.heard.len() as u64)
        }
    }

    fn slave(says: &[u8], rest: u8) -> Slave {
        Slave { says: says.iter().copied().collect(), rest, heard: Vec::new() }
    }

    /// Reads until nothing has come for a millisecond.
    fn all(bytes: &mut SpiBytes, slave: &mut Slave) -> Vec<u8> {
        let mut all = Vec::new();
        let mut some = [0; 100];
        loop {
            match bytes.receive(slave, &mut some, Duration::from_millis(1)).expect("it exchanges") {
                0 => return all,
                count => all.extend_from_slice(&some[..count]),
            }
        }
    }

    #[test]
    fn what_comes_while_others_are_sent_is_kept_in_order() {
        let (mut bytes, mut slave) = (SpiBytes::default(), slave(&[0, 0, 1, 2, 0, 0xff, 0, 3], 0));
        let sent: Vec<u8> = (0..10_000).map(|at| at as u8).collect();
        bytes.send(&mut slave, &sent).expect("it exchanges");
        assert_eq!(slave.heard, sent);
        let came = all(&mut bytes, &mut slave);
        // Idle bytes before the first non-idle byte are dropped; zeros after the last one can belong to its frame.
        assert_eq!(came[..6], [1, 2, 0, 0xff, 0, 3]);
        assert!(came[6..].iter().all(|byte| *byte == 0) && came.len() == 6 + MOST_FRAME_BYTES - 1, "{}", came.len());
        assert!(slave.heard[sent.len()..].iter().all(|byte| *byte == 0xff), "it only listens");
    }

    #[test]
    fn a_line_that_says_nothing_is_silent_for_as_long_as_is_waited() {
        for rest in [0, 0xff] {
            let (mut bytes, mut slave) = (SpiBytes::default(), slave(&[], rest));
            assert!(all(&mut bytes, &mut slave).is_empty());
            assert!((1000..1000 + LISTENING_BYTES.end()).contains(&slave.heard.len()), "{}", slave.heard.len());
        }
    }

    #[test]
    fn idle_bytes_of_a_frame_are_of_the_frame() {
        for idle in [0, 0xff] {
            let mut frame = vec![idle; MOST_FRAME_BYTES - 1];
            frame[0] = 3;
            let (mut bytes, mut slave) = (SpiBytes::default(), slave(&[&frame[..], &[4]].concat(), 0));
            let came = all(&mut bytes, &mut slave);
            assert!(came[..frame.len()] == frame && came[frame.len()] == 4);
            bytes.clear();
            assert!(all(&mut bytes, &mut slave).is_empty(), "what came before is forgotten");
        }
    }
}
