use super::*;
use crate::bench::tick;

/// The bytes that the receiver gets from a line with `bit_time` cycles per bit and no pause between the bytes.
fn receive(clocks_per_bit: u32, bit_time: f64, phase: f64, bytes: &[u8]) -> Vec<u8> {
    let mut line = vec![true; 2];
    for byte in bytes {
        line.push(false);
        line.extend((0..8).map(|bit| byte >> bit & 1 == 1));
        line.push(true);
    }
    line.push(true);
    let mut uut = UartReceiver::new(clocks_per_bit);
    uut.connect_all();
    let mut received = Vec::new();
    for cycle in 0..(line.len() as f64 * bit_time) as usize {
        let at = ((cycle as f64 + phase) / bit_time) as usize;
        uut.line.next = line.get(at).copied().unwrap_or(true);
        tick(&mut uut, |uut, level| uut.clock.next = level);
        if uut.bytes.valid.val() {
            received.push(uut.bytes.data.val().to_u8());
        }
    }
    received
}

#[test]
fn bytes_arrive_at_every_divisor_and_two_percent_off() {
    let bytes = [0x00, 0xff, 0x55, 0xaa, 0x01, 0x80, 0x7e];
    for clocks in [4, 5, 6, 7, 8, 13, 104] {
        for off in [-0.02, 0.0, 0.02] {
            for phase in [0.0, 0.3, 0.6, 0.9] {
                let received = receive(clocks, f64::from(clocks) * (1.0 + off), phase, &bytes);
                assert_eq!(received, bytes, "{clocks} cycles a bit, {off} off, phase {phase}");
            }
        }
    }
}

#[test]
fn a_byte_without_a_stop_bit_and_a_glitch_are_dropped() {
    let mut uut = UartReceiver::new(8);
    uut.connect_all();
    let mut received = Vec::new();
    let mut hold = |uut: &mut UartReceiver, level: bool, cycles: usize| {
        for _ in 0..cycles {
            uut.line.next = level;
            tick(uut, |uut, level| uut.clock.next = level);
            if uut.bytes.valid.val() {
                received.push(uut.bytes.data.val().to_u8());
            }
        }
    };
    hold(&mut uut, true, 8);
    hold(&mut uut, false, 2);
    hold(&mut uut, true, 100);
    hold(&mut uut, false, 79);
    hold(&mut uut, true, 200);
    assert!(received.is_empty(), "{received:?}");
}

#[test]
fn what_is_sent_is_received() {
    for clocks in [4, 5, 9, 26] {
        let mut uut = Uart::new(clocks);
        uut.connect_all();
        let bytes: Vec<u8> = (0..24).map(|i| (i * 37) as u8).collect();
        let (mut sent, mut received) = (0, Vec::new());
        for _ in 0..(bytes.len() as u32 + 2) * (clocks * 10 + 1) {
            uut.uart_rx.next = uut.uart_tx.val();
            uut.to_link.valid.next = sent < bytes.len();
            uut.to_link.data.next = u64::from(bytes.get(sent).copied().unwrap_or(0)).into();
            crate::bench::settle(&mut uut);
            let taken = uut.to_link.valid.val() && uut.to_link.ready.val();
            tick(&mut uut, |uut, level| uut.clock.next = level);
            sent += usize::from(taken);
            if uut.from_link.valid.val() {
                received.push(uut.from_link.data.val().to_u8());
            }
        }
        assert_eq!(received, bytes, "{clocks} cycles a bit");
    }
}
