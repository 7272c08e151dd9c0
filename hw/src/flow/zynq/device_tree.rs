//! Device-tree sources.

use crate::flow::FlowRequest;
use crate::flow::family::Processor;
use crate::peripheral::{DEFAULT_NAME, WINDOW_BYTES};

/// The largest buffer that the device tree requests, bytes: the usual size of a kernel's area of contiguous memory.
pub const BUFFER_BYTES: u64 = 64 << 20;

/// Writes the nodes through which the operating system provides the registers, the interrupt and a buffer of contiguous
/// memory.
pub(super) fn device_tree(request: &FlowRequest, processor: &Processor, registers: u64, interrupt: u32) -> String {
    let cells = |value: u64| match processor.wide {
        true => format!("{:#x} {:#x}", value >> 32, value & 0xffff_ffff),
        false => format!("{value:#x}"),
    };
    let bytes = request.config.memory_bytes().min(BUFFER_BYTES);
    let mut text = format!(
        "/* Tilewright {config} at {board}: registers and interrupt by uio_pdrv_genirq (of_id=generic-uio), memory by u-dma-buf.\n   \
         For the board's device tree: /include/ it behind the processor's, whose labels it uses. */\n\
         &{{/}} {{\n\t{DEFAULT_NAME}@{registers:x} {{\n\t\tcompatible = \"generic-uio\";\n\t\treg = <{reg} {window}>;\n\t\t\
         interrupt-parent = <&{controller}>;\n\t\tinterrupts = <0 {interrupt} 4>;\n\t}};\n\n\t{DEFAULT_NAME}_memory {{\n\t\t\
         compatible = \"ikwzm,u-dma-buf\";\n\t\tdevice-name = \"{DEFAULT_NAME}\";\n\t\tsize = <{bytes:#x}>;\n\t}};\n}};\n",
        config = request.config.name,
        board = request.board.title,
        reg = cells(registers),
        window = cells(WINDOW_BYTES),
        controller = processor.controller,
    );
    if !processor.wide {
        // No other driver uses the fabric's clock, so the system would turn it off.
        text.push_str("\n&clkc {\n\tfclk-enable = <0x1>;\n};\n");
    }
    text
}
