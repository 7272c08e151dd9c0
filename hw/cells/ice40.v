// Simulation models of iCE40's cells where those of Yosys do not serve a simulation of cycles; they take the place of those that
// have the same name.

// The phase-locked loop: its output has its input's clock, because a simulation counts cycles.
module SB_PLL40_CORE (
  input REFERENCECLK, EXTFEEDBACK, BYPASS, RESETB, LATCHINPUTVALUE, SDI, SCLK,
  input [7:0] DYNAMICDELAY,
  output PLLOUTCORE, PLLOUTGLOBAL, LOCK, SDO
);
  parameter FEEDBACK_PATH = "SIMPLE";
  parameter DELAY_ADJUSTMENT_MODE_FEEDBACK = "FIXED";
  parameter DELAY_ADJUSTMENT_MODE_RELATIVE = "FIXED";
  parameter SHIFTREG_DIV_MODE = 1'b0;
  parameter FDA_FEEDBACK = 4'b0000;
  parameter FDA_RELATIVE = 4'b0000;
  parameter PLLOUT_SELECT = "GENCLK";
  parameter DIVR = 4'b0000;
  parameter DIVF = 7'b0000000;
  parameter DIVQ = 3'b000;
  parameter FILTER_RANGE = 3'b000;
  parameter ENABLE_ICEGATE = 1'b0;
  parameter TEST_MODE = 1'b0;
  parameter EXTERNAL_DIVIDE_FACTOR = 1;
  assign PLLOUTCORE = REFERENCECLK;
  assign PLLOUTGLOBAL = REFERENCECLK;
  assign LOCK = 1'b1;
endmodule

// The same as the router names it.
module ICESTORM_PLL (
  input REFERENCECLK, EXTFEEDBACK, BYPASS, RESETB, LATCHINPUTVALUE, SDI, SCLK,
  output PLLOUT_A, PLLOUT_B, PLLOUT_A_GLOBAL, PLLOUT_B_GLOBAL, LOCK, SDO
);
  assign PLLOUT_A = REFERENCECLK;
  assign PLLOUT_B = REFERENCECLK;
  assign PLLOUT_A_GLOBAL = REFERENCECLK;
  assign PLLOUT_B_GLOBAL = REFERENCECLK;
  assign LOCK = 1'b1;
endmodule

// A pin, of the two plain directions that designs here have: in without a register, out without a register.
module SB_IO (
  inout PACKAGE_PIN,
  input LATCH_INPUT_VALUE, CLOCK_ENABLE, INPUT_CLK, OUTPUT_CLK, OUTPUT_ENABLE, D_OUT_0, D_OUT_1,
  output D_IN_0, D_IN_1
);
  parameter [5:0] PIN_TYPE = 6'b000000;
  parameter [0:0] PULLUP = 1'b0;
  parameter [0:0] NEG_TRIGGER = 1'b0;
  parameter IO_STANDARD = "SB_LVCMOS";
  generate
    if (PIN_TYPE[5:2] == 4'b0110) begin
      assign PACKAGE_PIN = D_OUT_0;
    end else begin
      assign D_IN_0 = PACKAGE_PIN;
    end
  endgenerate
endmodule
