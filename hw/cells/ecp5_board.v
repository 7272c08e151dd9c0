// Simulation models of the cells that a board's design instantiates for its clock and pins, in plain Verilog.
// Simulations of the RTL and of netlists both use them.

// The phase-locked loop. Simulations count cycles, so its output is its input's clock.
module EHXPLLL (
  input  CLKI, CLKFB, PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG, STDBY, PLLWAKESYNC, RST, ENCLKOP, ENCLKOS, ENCLKOS2,
  input  ENCLKOS3,
  output CLKOP, CLKOS, CLKOS2, CLKOS3, LOCK, INTLOCK, REFCLK, CLKINTFB
);
  parameter CLKI_DIV = 1;
  parameter CLKFB_DIV = 1;
  parameter CLKOP_DIV = 8;
  parameter CLKOS_DIV = 8;
  parameter CLKOS2_DIV = 8;
  parameter CLKOS3_DIV = 8;
  parameter CLKOP_ENABLE = "ENABLED";
  parameter CLKOS_ENABLE = "DISABLED";
  parameter CLKOS2_ENABLE = "DISABLED";
  parameter CLKOS3_ENABLE = "DISABLED";
  parameter CLKOP_CPHASE = 0;
  parameter CLKOS_CPHASE = 0;
  parameter CLKOS2_CPHASE = 0;
  parameter CLKOS3_CPHASE = 0;
  parameter CLKOP_FPHASE = 0;
  parameter CLKOS_FPHASE = 0;
  parameter CLKOS2_FPHASE = 0;
  parameter CLKOS3_FPHASE = 0;
  parameter FEEDBK_PATH = "CLKOP";
  parameter CLKOP_TRIM_POL = "RISING";
  parameter CLKOP_TRIM_DELAY = 0;
  parameter CLKOS_TRIM_POL = "RISING";
  parameter CLKOS_TRIM_DELAY = 0;
  parameter OUTDIVIDER_MUXA = "DIVA";
  parameter OUTDIVIDER_MUXB = "DIVB";
  parameter OUTDIVIDER_MUXC = "DIVC";
  parameter OUTDIVIDER_MUXD = "DIVD";
  parameter PLL_LOCK_MODE = 0;
  parameter PLL_LOCK_DELAY = 200;
  parameter STDBY_ENABLE = "DISABLED";
  parameter REFIN_RESET = "DISABLED";
  parameter SYNC_ENABLE = "DISABLED";
  parameter INT_LOCK_STICKY = "ENABLED";
  parameter DPHASE_SOURCE = "DISABLED";
  parameter PLLRST_ENA = "DISABLED";
  parameter INTFB_WAKE = "DISABLED";
  assign CLKOP = CLKI;
  assign LOCK = 1'b1;
endmodule

// The gate of a global clock. Loops are locked from the start here, so the gate is always open.
module DCCA (input CLKI, input CE, output CLKO);
  assign CLKO = CLKI;
endmodule

// A pin's double-rate register (Lattice's guide FPGA-TN-02035). It samples two bits at the rising edge, and outputs the
// first while the clock is high and the second while it is low.
module ODDRX1F (input SCLK, RST, D0, D1, output Q);
  parameter GSR = "ENABLED";
  reg first = 1'b0, second = 1'b0;
  always @(posedge SCLK) begin
    first <= D0 && !RST;
    second <= D1 && !RST;
  end
  assign Q = SCLK ? first : second;
endmodule
