// Simulation models of iCE40 cells for which Yosys's models do not suit a cycle-based simulation or make it much
// slower. They replace models of the same name, and have the same functions as Yosys's models, which follow Lattice's
// library.

// A look-up table of four inputs.
module SB_LUT4 (input I0, I1, I2, I3, output O);
  parameter [15:0] LUT_INIT = 16'd0;
  \$lut #(.WIDTH(4), .LUT(LUT_INIT)) u_lut (.A({I3, I2, I1, I0}), .Y(O));
endmodule

// A logic cell of a routed netlist: look-up table, carry and register. The flow has connected inputs that the router
// left open, so each has a value here.
module ICESTORM_LC (input I0, I1, I2, I3, CIN, CLK, CEN, SR, output LO, O, COUT);
  parameter [15:0] LUT_INIT = 16'd0;
  parameter [0:0] NEG_CLK = 1'b0;
  parameter [0:0] CARRY_ENABLE = 1'b0;
  parameter [0:0] DFF_ENABLE = 1'b0;
  parameter [0:0] SET_NORESET = 1'b0;
  parameter [0:0] ASYNC_SR = 1'b0;
  parameter [0:0] CIN_CONST = 1'b0;
  parameter [0:0] CIN_SET = 1'b0;
  wire cin = CIN_CONST ? CIN_SET : CIN;
  \$lut #(.WIDTH(4), .LUT(LUT_INIT)) u_lut (.A({I3, I2, I1, I0}), .Y(LO));
  generate
    if (CARRY_ENABLE) begin
      assign COUT = I1 && I2 || (I1 || I2) && cin;
    end else begin
      assign COUT = 1'b0;
    end
    if (!DFF_ENABLE) begin
      assign O = LO;
    end else begin
      reg q = 1'b0;
      wire clk = CLK ^ NEG_CLK;
      if (ASYNC_SR) begin
        always @(posedge clk, posedge SR) begin
          if (SR) q <= SET_NORESET;
          else if (CEN) q <= LO;
        end
      end else begin
        always @(posedge clk) begin
          if (CEN) q <= SR ? SET_NORESET : LO;
        end
      end
      assign O = q;
    end
  endgenerate
endmodule

// The block RAM: 256 words of 16 bits. A narrower port accesses every second, fourth or eighth bit of a word; its upper
// address bits select the first of them. A mask bit of 1 keeps that bit of the word.
module SB_RAM40_4K (
  input RCLK, RCLKE, RE, WCLK, WCLKE, WE,
  input [10:0] RADDR, WADDR,
  input [15:0] MASK, WDATA,
  output [15:0] RDATA
);
  parameter WRITE_MODE = 0;
  parameter READ_MODE = 0;
  parameter [255:0] INIT_0 = 256'd0;
  parameter [255:0] INIT_1 = 256'd0;
  parameter [255:0] INIT_2 = 256'd0;
  parameter [255:0] INIT_3 = 256'd0;
  parameter [255:0] INIT_4 = 256'd0;
  parameter [255:0] INIT_5 = 256'd0;
  parameter [255:0] INIT_6 = 256'd0;
  parameter [255:0] INIT_7 = 256'd0;
  parameter [255:0] INIT_8 = 256'd0;
  parameter [255:0] INIT_9 = 256'd0;
  parameter [255:0] INIT_A = 256'd0;
  parameter [255:0] INIT_B = 256'd0;
  parameter [255:0] INIT_C = 256'd0;
  parameter [255:0] INIT_D = 256'd0;
  parameter [255:0] INIT_E = 256'd0;
  parameter [255:0] INIT_F = 256'd0;
  localparam [4095:0] Init = {INIT_F, INIT_E, INIT_D, INIT_C, INIT_B, INIT_A, INIT_9, INIT_8,
                              INIT_7, INIT_6, INIT_5, INIT_4, INIT_3, INIT_2, INIT_1, INIT_0};
  reg [15:0] memory [0:255];
  integer i;
  initial for (i = 0; i < 256; i = i + 1) memory[i] = Init[16 * i +: 16];

  wire [15:0] keep, data;
  reg [15:0] word;
  generate
    if (WRITE_MODE == 0) begin
      assign keep = MASK;
      assign data = WDATA;
    end else if (WRITE_MODE == 1) begin
      assign keep = ~(16'h5555 << WADDR[8]);
      assign data = {{2{WDATA[14]}}, {2{WDATA[12]}}, {2{WDATA[10]}}, {2{WDATA[8]}},
                     {2{WDATA[6]}}, {2{WDATA[4]}}, {2{WDATA[2]}}, {2{WDATA[0]}}};
    end else if (WRITE_MODE == 2) begin
      assign keep = ~(16'h1111 << WADDR[9:8]);
      assign data = {{4{WDATA[13]}}, {4{WDATA[9]}}, {4{WDATA[5]}}, {4{WDATA[1]}}};
    end else begin
      assign keep = ~(16'h0101 << WADDR[10:8]);
      assign data = {{8{WDATA[11]}}, {8{WDATA[3]}}};
    end
  endgenerate
  always @(posedge WCLK) begin
    if (WE && WCLKE) memory[WADDR[7:0]] <= memory[WADDR[7:0]] & keep | data & ~keep;
  end
  wire [15:0] found = memory[RADDR[7:0]];
  generate
    if (READ_MODE == 0) begin
      always @(posedge RCLK) if (RE && RCLKE) word <= found;
    end else if (READ_MODE == 1) begin
      always @(posedge RCLK) if (RE && RCLKE) word <= found >> RADDR[8] & 16'h5555;
    end else if (READ_MODE == 2) begin
      always @(posedge RCLK) if (RE && RCLKE) word <= (found >> RADDR[9:8] & 16'h1111) << 1;
    end else begin
      always @(posedge RCLK) if (RE && RCLKE) word <= (found >> RADDR[10:8] & 16'h0101) << 3;
    end
  endgenerate
  assign RDATA = word;
endmodule

// The same with the router's names: one port per bit.
module ICESTORM_RAM (
  input RCLK, RCLKE, RE, WCLK, WCLKE, WE,
  input RADDR_10, RADDR_9, RADDR_8, RADDR_7, RADDR_6, RADDR_5, RADDR_4, RADDR_3, RADDR_2, RADDR_1, RADDR_0,
  input WADDR_10, WADDR_9, WADDR_8, WADDR_7, WADDR_6, WADDR_5, WADDR_4, WADDR_3, WADDR_2, WADDR_1, WADDR_0,
  input MASK_15, MASK_14, MASK_13, MASK_12, MASK_11, MASK_10, MASK_9, MASK_8,
  input MASK_7, MASK_6, MASK_5, MASK_4, MASK_3, MASK_2, MASK_1, MASK_0,
  input WDATA_15, WDATA_14, WDATA_13, WDATA_12, WDATA_11, WDATA_10, WDATA_9, WDATA_8,
  input WDATA_7, WDATA_6, WDATA_5, WDATA_4, WDATA_3, WDATA_2, WDATA_1, WDATA_0,
  output RDATA_15, RDATA_14, RDATA_13, RDATA_12, RDATA_11, RDATA_10, RDATA_9, RDATA_8,
  output RDATA_7, RDATA_6, RDATA_5, RDATA_4, RDATA_3, RDATA_2, RDATA_1, RDATA_0
);
  parameter WRITE_MODE = 0;
  parameter READ_MODE = 0;
  parameter [0:0] NEG_CLK_R = 1'b0;
  parameter [0:0] NEG_CLK_W = 1'b0;
  parameter [255:0] INIT_0 = 256'd0;
  parameter [255:0] INIT_1 = 256'd0;
  parameter [255:0] INIT_2 = 256'd0;
  parameter [255:0] INIT_3 = 256'd0;
  parameter [255:0] INIT_4 = 256'd0;
  parameter [255:0] INIT_5 = 256'd0;
  parameter [255:0] INIT_6 = 256'd0;
  parameter [255:0] INIT_7 = 256'd0;
  parameter [255:0] INIT_8 = 256'd0;
  parameter [255:0] INIT_9 = 256'd0;
  parameter [255:0] INIT_A = 256'd0;
  parameter [255:0] INIT_B = 256'd0;
  parameter [255:0] INIT_C = 256'd0;
  parameter [255:0] INIT_D = 256'd0;
  parameter [255:0] INIT_E = 256'd0;
  parameter [255:0] INIT_F = 256'd0;
  SB_RAM40_4K #(
    .WRITE_MODE(WRITE_MODE), .READ_MODE(READ_MODE),
    .INIT_0(INIT_0), .INIT_1(INIT_1), .INIT_2(INIT_2), .INIT_3(INIT_3),
    .INIT_4(INIT_4), .INIT_5(INIT_5), .INIT_6(INIT_6), .INIT_7(INIT_7),
    .INIT_8(INIT_8), .INIT_9(INIT_9), .INIT_A(INIT_A), .INIT_B(INIT_B),
    .INIT_C(INIT_C), .INIT_D(INIT_D), .INIT_E(INIT_E), .INIT_F(INIT_F)
  ) u_ram (
    .RCLK(RCLK ^ NEG_CLK_R), .RCLKE(RCLKE), .RE(RE), .WCLK(WCLK ^ NEG_CLK_W), .WCLKE(WCLKE), .WE(WE),
    .RADDR({RADDR_10, RADDR_9, RADDR_8, RADDR_7, RADDR_6, RADDR_5, RADDR_4, RADDR_3, RADDR_2, RADDR_1, RADDR_0}),
    .WADDR({WADDR_10, WADDR_9, WADDR_8, WADDR_7, WADDR_6, WADDR_5, WADDR_4, WADDR_3, WADDR_2, WADDR_1, WADDR_0}),
    .MASK({MASK_15, MASK_14, MASK_13, MASK_12, MASK_11, MASK_10, MASK_9, MASK_8,
           MASK_7, MASK_6, MASK_5, MASK_4, MASK_3, MASK_2, MASK_1, MASK_0}),
    .WDATA({WDATA_15, WDATA_14, WDATA_13, WDATA_12, WDATA_11, WDATA_10, WDATA_9, WDATA_8,
            WDATA_7, WDATA_6, WDATA_5, WDATA_4, WDATA_3, WDATA_2, WDATA_1, WDATA_0}),
    .RDATA({RDATA_15, RDATA_14, RDATA_13, RDATA_12, RDATA_11, RDATA_10, RDATA_9, RDATA_8,
            RDATA_7, RDATA_6, RDATA_5, RDATA_4, RDATA_3, RDATA_2, RDATA_1, RDATA_0})
  );
endmodule

// The phase-locked loop with the router's names. Simulations count cycles, so its output is its input's clock.
module ICESTORM_PLL (
  input REFERENCECLK, EXTFEEDBACK, BYPASS, RESETB, LATCHINPUTVALUE, SDI, SCLK,
  input DYNAMICDELAY_7, DYNAMICDELAY_6, DYNAMICDELAY_5, DYNAMICDELAY_4,
  input DYNAMICDELAY_3, DYNAMICDELAY_2, DYNAMICDELAY_1, DYNAMICDELAY_0,
  output PLLOUT_A, PLLOUT_B, PLLOUT_A_GLOBAL, PLLOUT_B_GLOBAL, LOCK, SDO
);
  parameter TEST_MODE = 0;
  parameter SHIFTREG_DIVMODE = 0;
  parameter PLLTYPE = 0;
  parameter ENABLE_ICEGATE_PORTA = 0;
  parameter ENABLE_ICEGATE_PORTB = 0;
  parameter PLLOUT_SELECT_A = 0;
  parameter PLLOUT_SELECT_B = 0;
  parameter FILTER_RANGE = 0;
  parameter FEEDBACK_PATH = 0;
  parameter FDA_RELATIVE = 0;
  parameter FDA_FEEDBACK = 0;
  parameter DIVR = 0;
  parameter DIVQ = 0;
  parameter DIVF = 0;
  parameter DELAY_ADJMODE_REL = 0;
  parameter DELAY_ADJMODE_FB = 0;
  assign PLLOUT_A = REFERENCECLK;
  assign PLLOUT_B = REFERENCECLK;
  assign PLLOUT_A_GLOBAL = REFERENCECLK;
  assign PLLOUT_B_GLOBAL = REFERENCECLK;
  assign LOCK = 1'b1;
endmodule

// A pin without registers, as an input or an output: our designs have no others.
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
    if (PIN_TYPE == 6'b011001) begin
      assign PACKAGE_PIN = D_OUT_0;
    end else if (PIN_TYPE == 6'b000001) begin
      assign D_IN_0 = PACKAGE_PIN;
    end else begin
      TW_NO_MODEL_OF_THIS_PIN u_none ();
    end
  endgenerate
endmodule
