use super::*;
use crate::bench::{settle, tick};

/// The slave, the bytes it received and those it has to send.
struct Bench {
    spi: Spi,
    received: Vec<u8>,
    to_send: Vec<u8>,
    /// Cycles before the next byte is offered.
    pause: usize,
}

impl Bench {
    fn cycles(&mut self, count: usize) {
        for _ in 0..count {
            let spi = &mut self.spi;
            self.pause = self.pause.saturating_sub(1);
            spi.to_link.valid.next = !self.to_send.is_empty() && self.pause == 0;
            spi.to_link.data.next = u64::from(self.to_send.first().copied().unwrap_or(0)).into();
            settle(spi);
            if spi.to_link.ready.val() {
                assert!(spi.to_link.valid.val(), "only what is offered is taken");
                self.to_send.remove(0);
                self.pause = self.to_send.len() * 23 % 150;
            }
            if spi.from_link.valid.val() {
                self.received.push(spi.from_link.data.val().to_u8());
            }
            tick(spi, |spi, level| spi.clock.next = level);
        }
    }

    /// The master: sends a byte with `half` cycles between edges, and returns the received byte.
    fn exchange(&mut self, byte: u8, half: usize) -> u8 {
        (0..8).rev().fold(0, |got, bit| {
            self.spi.spi_mosi.next = byte >> bit & 1 == 1;
            self.cycles(half);
            let miso = self.spi.spi_miso.val();
            self.spi.spi_sck.next = true;
            self.cycles(half);
            self.spi.spi_sck.next = false;
            got << 1 | u8::from(miso)
        })
    }
}

#[test]
fn bytes_cross_both_ways_at_an_eighth_of_the_clock() {
    for half in [4, 5, 9] {
        for per_selection in [1, 3, 100] {
            let to_send: Vec<u8> = (0..20).map(|i| (i * 67 + 0x81) as u8 | 1).collect();
            let to_board: Vec<u8> = (0..60).map(|i| (i * 91) as u8).collect();
            let mut bench = Bench { spi: Spi::default(), received: vec![], to_send: to_send.clone(), pause: 0 };
            bench.spi.connect_all();
            bench.spi.spi_cs_n.next = true;
            bench.cycles(10);
            let mut got = Vec::new();
            for bytes in to_board.chunks(per_selection) {
                bench.spi.spi_cs_n.next = false;
                bench.cycles(4);
                got.extend(bytes.iter().map(|byte| bench.exchange(*byte, half)).filter(|byte| *byte != 0));
                bench.cycles(half);
                bench.spi.spi_cs_n.next = true;
                bench.cycles(8);
            }
            assert_eq!(bench.received, to_board);
            assert_eq!(got, to_send[..got.len()]);
            assert_eq!(got.len() + bench.to_send.len(), to_send.len(), "no byte is lost between selections");
            assert!(got.len() > 10);
        }
    }
}
