//! The SystemVerilog core as a block of rust-hdl.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;

use crate::bytes::{CoreBus, CoreRegisters};

/// The core. It has no model in rust-hdl's simulator; simulations of a whole shell use the Verilog.
#[derive(LogicBlock)]
pub struct Core<const BUS: usize, const BYTES: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub regs: CoreRegisters,
    pub irq: Signal<Out, Bit>,
    pub bus: CoreBus<BUS, BYTES>,
    _offset_bits: u32,
}

impl<const BUS: usize, const BYTES: usize> Core<BUS, BYTES> {
    pub fn new(config: &HwConfig) -> Self {
        Core {
            clock: Default::default(),
            reset: Default::default(),
            regs: Default::default(),
            irq: Default::default(),
            bus: Default::default(),
            _offset_bits: config.offset_bits,
        }
    }
}

impl<const BUS: usize, const BYTES: usize> Logic for Core<BUS, BYTES> {
    fn update(&mut self) {}

    fn connect(&mut self) {
        self.regs.rdata.connect();
        self.irq.connect();
        self.bus.ar_valid.connect();
        self.bus.ar_id.connect();
        self.bus.ar_addr.connect();
        self.bus.ar_len.connect();
        self.bus.aw_valid.connect();
        self.bus.aw_addr.connect();
        self.bus.aw_len.connect();
        self.bus.w_valid.connect();
        self.bus.w_data.connect();
        self.bus.w_strb.connect();
        self.bus.w_last.connect();
    }

    fn hdl(&self) -> Verilog {
        let offset = self._offset_bits;
        // Addresses are widened to those of the link.
        let widened = |name: &str| match 40 - offset {
            0 => format!("assign bus${name}_addr = {name}_addr;"),
            more => format!("assign bus${name}_addr = {{{more}'d0, {name}_addr}};"),
        };
        let code = format!(
            "wire [{top}:0] ar_addr;
wire [{top}:0] aw_addr;
{ar}
{aw}
tw_core u_core (
  .clk_i(clock), .rst_ni(!reset),
  .reg_valid_i(regs$valid), .reg_write_i(regs$write), .reg_addr_i(regs$addr), .reg_wdata_i(regs$wdata), .reg_rdata_o(regs$rdata),
  .irq_o(irq),
  .ar_valid_o(bus$ar_valid), .ar_ready_i(bus$ar_ready), .ar_id_o(bus$ar_id), .ar_addr_o(ar_addr), .ar_len_o(bus$ar_len),
  .r_valid_i(bus$r_valid), .r_id_i(bus$r_id), .r_data_i(bus$r_data), .r_resp_i({{bus$r_error, 1'b0}}), .r_last_i(bus$r_last),
  .aw_valid_o(bus$aw_valid), .aw_ready_i(bus$aw_ready), .aw_addr_o(aw_addr), .aw_len_o(bus$aw_len),
  .w_valid_o(bus$w_valid), .w_ready_i(bus$w_ready), .w_data_o(bus$w_data), .w_strb_o(bus$w_strb), .w_last_o(bus$w_last),
  .b_valid_i(bus$b_valid), .b_resp_i({{bus$b_error, 1'b0}})
);",
            top = offset - 1,
            ar = widened("ar"),
            aw = widened("aw"),
        );
        Verilog::Wrapper(Wrapper { code, cores: String::new() })
    }
}
