//! The CRC of frames, one byte per cycle ([`tilewright_hw::link::crc_step`]).

use rust_hdl::prelude::*;

/// CRC of the bytes since it was last cleared.
#[derive(LogicBlock, Default)]
pub struct Crc {
    pub clock: Signal<In, Clock>,
    /// Restarts the CRC; takes precedence over `feed`.
    pub clear: Signal<In, Bit>,
    pub feed: Signal<In, Bit>,
    pub data: Signal<In, Bits<8>>,
    pub value: Signal<Out, Bits<16>>,
    crc: DFF<Bits<16>>,
    high: Signal<Local, Bits<8>>,
    folded: Signal<Local, Bits<16>>,
}

impl Logic for Crc {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, crc);
        self.value.next = self.crc.q.val();
        // The eight steps of a byte, combined.
        self.high.next = bit_cast::<8, 16>(self.crc.q.val() >> 8) ^ self.data.val();
        self.folded.next = bit_cast::<16, 8>(self.high.val()) ^ (bit_cast::<16, 8>(self.high.val()) >> 4);
        if self.feed.val() {
            self.crc.d.next =
                (self.crc.q.val() << 8) ^ (self.folded.val() << 12) ^ (self.folded.val() << 5) ^ self.folded.val();
        }
        if self.clear.val() {
            self.crc.d.next = 0xffff.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tick;
    use tilewright_hw::link;

    #[test]
    fn it_is_the_links() {
        let mut uut = Crc::default();
        uut.connect_all();
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * i * 7 + i / 3) as u8).collect();
        for length in [1, 9, 300] {
            uut.clear.next = true;
            tick(&mut uut, |uut, level| uut.clock.next = level);
            uut.clear.next = false;
            uut.feed.next = true;
            for byte in &bytes[..length] {
                uut.data.next = u64::from(*byte).into();
                tick(&mut uut, |uut, level| uut.clock.next = level);
            }
            uut.feed.next = false;
            assert_eq!(uut.value.val().to_u16(), link::crc(&bytes[..length]));
        }
    }
}
