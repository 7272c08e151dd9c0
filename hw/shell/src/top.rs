//! A complete shell: link, bridge, status, memory and core.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::MemorySide;

use crate::block_ram::BlockMemory;
use crate::bridge::Bridge;
use crate::bytes::{CoreBus, FromLink, ReceivedBody, RegisterPort, SdramPins, SentBody, ToLink};
use crate::core::Core;
use crate::host_memory::HostMemory;
use crate::sdram::SdramMemory;
use crate::spi::Spi;
use crate::status::Status;
use crate::uart::Uart;
use crate::{ShellConfig, ShellError, ShellLink, ShellMemory, TOP, verilog};

/// The module below the top.
const BOARD: &str = "tw_board";

/// Defines a shell: a link with its pins and, if it takes one, a reset; a memory with its pins, if it has any.
macro_rules! shell {
    (
        $(#[$doc:meta])* $name:ident,
        $link:ident($($in:ident)* -> $out:ident $(, $reset:ident)?),
        $memory:ident $(($pins:ident))?
    ) => {
        $(#[$doc])*
        #[derive(LogicBlock)]
        struct $name<const BUS: usize, const BYTES: usize, const LOG: usize> {
            pub clk: Signal<In, Clock>,
            $(pub $in: Signal<In, Bit>,)*
            pub $out: Signal<Out, Bit>,
            pub leds: Signal<Out, Bits<4>>,
            $(pub $pins: SdramPins,)?
            link: $link,
            bridge: Bridge,
            status: Status,
            memory: $memory<BUS, BYTES, LOG>,
            core: Core<BUS, BYTES>,
        }

        impl<const BUS: usize, const BYTES: usize, const LOG: usize> $name<BUS, BYTES, LOG> {
            fn new(
                config: &HwConfig,
                leds: u32,
                side: MemorySide,
                link: $link,
                memory: $memory<BUS, BYTES, LOG>,
            ) -> Self {
                $name {
                    clk: Default::default(),
                    $($in: Default::default(),)*
                    $out: Default::default(),
                    leds: Default::default(),
                    $($pins: Default::default(),)?
                    link,
                    bridge: Bridge::new(config, side),
                    status: Status::new(leds),
                    memory,
                    core: Core::new(config),
                }
            }
        }

        impl<const BUS: usize, const BYTES: usize, const LOG: usize> Logic for $name<BUS, BYTES, LOG> {
            #[hdl_gen]
            fn update(&mut self) {
                clock!(self, clk, link, bridge, status, memory, core);
                $(self.link.$in.next = self.$in.val();)*
                self.$out.next = self.link.$out.val();
                $(self.link.$reset.next = self.bridge.reset.val();)?
                FromLink::join(&mut self.link.from_link, &mut self.bridge.from_link);
                ToLink::join(&mut self.link.to_link, &mut self.bridge.to_link);

                self.status.reset.next = self.bridge.reset.val();
                self.memory.reset.next = self.bridge.reset.val();
                self.core.reset.next = self.bridge.reset.val();
                self.bridge.irq.next = self.core.irq.val();
                self.bridge.memory_up.next = self.memory.up.val();
                $(SdramPins::link(&mut self.$pins, &mut self.memory.pins);)?
                self.status.refused.next = self.bridge.refused.val();
                self.leds.next = self.status.leds.val();
                RegisterPort::join(&mut self.bridge.regs, &mut self.status.from_bridge);
                RegisterPort::join(&mut self.status.to_core, &mut self.core.regs);
                ReceivedBody::join(&mut self.bridge.to_memory, &mut self.memory.from_host);
                SentBody::join(&mut self.bridge.from_memory, &mut self.memory.to_host);
                CoreBus::<BUS, BYTES>::join(&mut self.core.bus, &mut self.memory.bus);
            }
        }
    };
}

shell!(
    /// A UART, memory at the host.
    UartHost, Uart(uart_rx -> uart_tx), HostMemory
);
shell!(
    /// SPI, memory at the host.
    SpiHost, Spi(spi_cs_n spi_sck spi_mosi -> spi_miso, reset), HostMemory
);
shell!(
    /// A UART, block RAM.
    UartBlock, Uart(uart_rx -> uart_tx), BlockMemory
);
shell!(
    /// SPI, block RAM.
    SpiBlock, Spi(spi_cs_n spi_sck spi_mosi -> spi_miso, reset), BlockMemory
);
shell!(
    /// A UART, SDRAM.
    UartSdram, Uart(uart_rx -> uart_tx), SdramMemory(sdram)
);
shell!(
    /// SPI, SDRAM.
    SpiSdram, Spi(spi_cs_n spi_sck spi_mosi -> spi_miso, reset), SdramMemory(sdram)
);

/// Generates the Verilog of the shell for this bus width.
pub fn board<const BUS: usize, const BYTES: usize, const LOG: usize>(
    config: &HwConfig,
    shell: &ShellConfig,
) -> Result<String, ShellError> {
    let (leds, side) = (shell.leds, shell.memory.side());
    let host = || HostMemory::<BUS, BYTES, LOG>::new(config);
    let ram = |kib: u32| {
        let style = if matches!(shell.memory, ShellMemory::Spram { .. }) { "huge" } else { "block" };
        BlockMemory::<BUS, BYTES, LOG>::new(u64::from(kib) << 10, style)
    };
    match (shell.host, shell.memory) {
        (ShellLink::Uart { clocks_per_bit }, ShellMemory::Host) => {
            verilog(BOARD, UartHost::new(config, leds, side, Uart::new(clocks_per_bit), host()))
        }
        (ShellLink::Uart { clocks_per_bit }, ShellMemory::BlockRam { kib } | ShellMemory::Spram { kib }) => {
            verilog(BOARD, UartBlock::new(config, leds, side, Uart::new(clocks_per_bit), ram(kib)))
        }
        (ShellLink::Uart { clocks_per_bit }, ShellMemory::Sdram { geometry, cycles }) => {
            let memory = SdramMemory::<BUS, BYTES, LOG>::new(geometry, cycles);
            verilog(BOARD, UartSdram::new(config, leds, side, Uart::new(clocks_per_bit), memory))
        }
        (ShellLink::Spi, ShellMemory::Sdram { geometry, cycles }) => {
            let memory = SdramMemory::<BUS, BYTES, LOG>::new(geometry, cycles);
            verilog(BOARD, SpiSdram::new(config, leds, side, Spi::default(), memory))
        }
        (ShellLink::Spi, ShellMemory::Host) => verilog(BOARD, SpiHost::new(config, leds, side, Spi::default(), host())),
        (ShellLink::Spi, ShellMemory::BlockRam { kib } | ShellMemory::Spram { kib }) => {
            verilog(BOARD, SpiBlock::new(config, leds, side, Spi::default(), ram(kib)))
        }
    }
}

/// The top module, with as many LEDs as the board has and SDRAM pins as wide as the chip's.
pub fn ports(shell: &ShellConfig) -> String {
    let pins: &[&str] = match shell.host {
        ShellLink::Uart { .. } => &["input wire uart_rx", "output wire uart_tx"],
        ShellLink::Spi => &["input wire spi_cs_n", "input wire spi_sck", "input wire spi_mosi", "output wire spi_miso"],
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
    if let ShellMemory::Sdram { geometry, .. } = shell.memory {
        for port in ["ras_n", "cas_n", "we_n", "dq_oe"] {
            ports.push(format!("output wire sdram_{port}"));
            joins.push(format!(".sdram${port}(sdram_{port})"));
        }
        let data = geometry.data_bits;
        for (port, all, bits) in [
            ("a", 13, geometry.rows.ilog2()),
            ("ba", 2, geometry.banks.ilog2()),
            ("dqm", 4, if geometry.has_masks { geometry.data_bytes() } else { 0 }),
            ("dq_o", 32, data),
        ] {
            body += &format!("    wire [{}:0] all_{port};\n", all - 1);
            joins.push(format!(".sdram${port}(all_{port})"));
            if let Some(high) = bits.checked_sub(1) {
                ports.push(format!("output wire [{high}:0] sdram_{port}"));
                body += &format!("    assign sdram_{port} = all_{port}[{high}:0];\n");
            }
        }
        ports.push(format!("input wire [{}:0] sdram_dq_i", data - 1));
        let high = if data < 32 { format!("{{{}'d0, sdram_dq_i}}", 32 - data) } else { "sdram_dq_i".into() };
        joins.push(format!(".sdram$dq_i({high})"));
    }
    format!(
        "module {TOP}(\n    {}\n);\n{body}    {BOARD} board(\n        {}\n    );\nendmodule\n",
        ports.join(",\n    "),
        joins.join(",\n        ")
    )
}
