//! The whole of a shell: link, bridge, status, memory and core.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link;

use crate::bridge::Bridge;
use crate::bytes::{CoreBus, FromLink, ReceivedBody, RegisterPort, SentBody, ToLink};
use crate::core::Core;
use crate::host_memory::HostMemory;
use crate::status::Status;
use crate::uart::{UartReceiver, UartTransmitter};
use crate::{Host, Memory, ShellConfig, ShellError, TOP, verilog};

/// The module below the top.
const BOARD: &str = "tw_board";

/// A shell with a UART and its memory at the host.
#[derive(LogicBlock)]
struct UartHost<const BUS: usize, const BYTES: usize, const LOG: usize> {
    pub clk: Signal<In, Clock>,
    pub uart_rx: Signal<In, Bit>,
    pub uart_tx: Signal<Out, Bit>,
    pub leds: Signal<Out, Bits<4>>,
    uart_in: UartReceiver,
    uart_out: UartTransmitter,
    bridge: Bridge,
    status: Status,
    memory: HostMemory<BUS, BYTES, LOG>,
    core: Core<BUS, BYTES>,
}

impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for UartHost<BUS, BYTES, LOG> {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clk, uart_in, uart_out, bridge, status, memory, core);
        self.uart_in.line.next = self.uart_rx.val();
        self.uart_tx.next = self.uart_out.line.val();
        FromLink::join(&mut self.uart_in.bytes, &mut self.bridge.from_link);
        ToLink::join(&mut self.uart_out.bytes, &mut self.bridge.to_link);

        self.status.reset.next = self.bridge.reset.val();
        self.memory.reset.next = self.bridge.reset.val();
        self.core.reset.next = self.bridge.reset.val();
        self.bridge.irq.next = self.core.irq.val();
        self.status.refused.next = self.bridge.refused.val();
        self.leds.next = self.status.leds.val();
        RegisterPort::join(&mut self.bridge.regs, &mut self.status.from_bridge);
        RegisterPort::join(&mut self.status.to_core, &mut self.core.regs);
        ReceivedBody::join(&mut self.bridge.to_memory, &mut self.memory.from_host);
        SentBody::join(&mut self.bridge.from_memory, &mut self.memory.to_host);
        CoreBus::<BUS, BYTES>::join(&mut self.core.bus, &mut self.memory.bus);
    }
}

/// The Verilog of the shell at this width of the bus.
pub fn board<const BUS: usize, const BYTES: usize, const LOG: usize>(
    config: &HwConfig,
    shell: &ShellConfig,
) -> Result<String, ShellError> {
    match (shell.host, shell.memory) {
        (Host::Uart { clocks_per_bit }, Memory::Host) => verilog(
            BOARD,
            UartHost::<BUS, BYTES, LOG> {
                clk: Default::default(),
                uart_rx: Default::default(),
                uart_tx: Default::default(),
                leds: Default::default(),
                uart_in: UartReceiver::new(clocks_per_bit),
                uart_out: UartTransmitter::new(clocks_per_bit),
                bridge: Bridge::new(config, link::Memory::Host),
                status: Status::new(shell.leds),
                memory: HostMemory::new(config),
                core: Core::new(config),
            },
        ),
    }
}

/// The top module, which has as many LEDs as the board.
pub fn ports(shell: &ShellConfig) -> String {
    let pins: &[&str] = match shell.host {
        Host::Uart { .. } => &["input wire uart_rx", "output wire uart_tx"],
    };
    let mut ports = vec!["input wire clk".to_string()];
    ports.extend(pins.iter().map(ToString::to_string));
    let mut joins: Vec<String> = ports
        .iter()
        .map(|port| port.rsplit(' ').next().unwrap_or(port))
        .map(|name| format!(".{name}({name})"))
        .collect();
    joins.push(".leds(all_leds)".to_string());
    let (mut body, high) = ("    wire [3:0] all_leds;\n".to_string(), shell.leds.wrapping_sub(1));
    if shell.leds > 0 {
        ports.push(format!("output wire [{high}:0] leds"));
        body += &format!("    assign leds = all_leds[{high}:0];\n");
    }
    format!(
        "module {TOP}(\n    {}\n);\n{body}    {BOARD} board(\n        {}\n    );\nendmodule\n",
        ports.join(",\n    "),
        joins.join(",\n        ")
    )
}
