// Simulation models of ECP5 cells that Yosys does not model, or not in the form of a routed netlist. They replace
// models of the same name. They follow Lattice's guides (memory FPGA-TN-02204, multipliers FPGA-TN-02205) as far as our
// designs use the cells. Any other use instantiates an undefined module, which stops the netlist check.

// A pin. A bidirectional pin is driven through a buffer, and the simulator's harness resolves it with the outside. The
// register next to the pin may drive an output.
module TRELLIS_IO (inout B, input I, T, IOLDO, IOLTO, output O);
  parameter DIR = "INPUT";
  parameter DATAMUX_ODDR = "PADDO";
  parameter DATAMUX_MDDR = "PADDO";
  wire out = DATAMUX_ODDR == "IOLDO" ? IOLDO : I;
  generate
    if (DATAMUX_MDDR != "PADDO") begin
      TW_NO_MODEL_OF_THIS_DATA_OF_A_PIN u_none ();
    end
    if (DIR == "INPUT") begin
      assign O = B;
    end else if (DIR == "BIDIR") begin
      \$_TBUF_ u_drive (.A(out), .E(!T), .Y(B));
      assign O = B;
    end else begin
      assign B = out;
    end
  endgenerate
endmodule

// The registers next to a pin. Our designs use only the double-rate output register. Pins on the top and bottom sides
// of the part have this cell; those on the left and right have the next one, with more functions.
module SIOLOGIC (
  input TXDATA1, TXDATA0, TSDATA0, LSR, CE, CLK, PADDI, IOLDOI, DI, DIRECTION, MOVE, LOADN,
  output INFF, RXDATA1, RXDATA0, INDD, IOLDOD, IOLTO, IOLDO, CFLAG
);
  parameter MODE = "NONE";
  parameter GSR = "ENABLED";
  parameter CLKIMUX = "CLK";
  parameter CLKOMUX = "CLK";
  parameter LSRIMUX = "0";
  parameter LSROMUX = "0";
  parameter LSRMUX = "LSR";
  parameter \DELAY.OUTDEL = "DISABLED";
  parameter \DELAY.DEL_VALUE = "0000000";
  parameter \DELAY.WAIT_FOR_EDGE = "DISABLED";
  TW_PIN_REG #(.MODE(MODE), .CLKMUX(CLKOMUX), .LSRMUX(LSRMUX), .LSROMUX(LSROMUX)) u_out
    (.clk(CLK), .lsr(LSR), .first(TXDATA0), .second(TXDATA1), .q(IOLDO));
endmodule

module IOLOGIC (
  input WRPNTR2, WRPNTR1, WRPNTR0, RDPNTR2, RDPNTR1, RDPNTR0, DQSW, DQSW270, DQSR90, SLIP, TXDATA6, TXDATA5, TXDATA4, TXDATA3,
  input TXDATA2, TSDATA1, ECLK, TXDATA1, TXDATA0, TSDATA0, LSR, CE, CLK, PADDI, IOLDOI, DI, DIRECTION, MOVE, LOADN,
  output RXDATA6, RXDATA5, RXDATA4, RXDATA3, RXDATA2, INFF, RXDATA1, RXDATA0, INDD, IOLDOD, IOLTO, IOLDO, CFLAG
);
  parameter MODE = "NONE";
  parameter GSR = "ENABLED";
  parameter CLKIMUX = "CLK";
  parameter CLKOMUX = "CLK";
  parameter LSRIMUX = "0";
  parameter LSROMUX = "0";
  parameter LSRMUX = "LSR";
  parameter \DELAY.OUTDEL = "DISABLED";
  parameter \DELAY.DEL_VALUE = "0000000";
  parameter \DELAY.WAIT_FOR_EDGE = "DISABLED";
  parameter IOLTOMUX = "NONE";
  parameter \IDDRXN.MODE = "NONE";
  parameter \ODDRXN.MODE = "NONE";
  parameter \MIDDRX.MODE = "NONE";
  parameter \MODDRX.MODE = "NONE";
  parameter \MTDDRX.MODE = "NONE";
  parameter \MTDDRX.REGSET = "RESET";
  parameter \MTDDRX.DQSW_INVERT = "DISABLED";
  parameter \MIDDRX_MODDRX.WRCLKMUX = "NONE";
  TW_PIN_REG #(.MODE(MODE), .CLKMUX(CLKOMUX), .LSRMUX(LSRMUX), .LSROMUX(LSROMUX)) u_out
    (.clk(CLK), .lsr(LSR), .first(TXDATA0), .second(TXDATA1), .q(IOLDO));
endmodule

module TW_PIN_REG #(
  parameter MODE = "NONE",
  parameter CLKMUX = "CLK",
  parameter LSRMUX = "LSR",
  parameter LSROMUX = "0"
) (
  input clk, lsr, first, second, output q
);
  wire clock = CLKMUX == "INV" ? !clk : clk;
  wire reset = LSROMUX == "LSRMUX" && (LSRMUX == "INV" ? !lsr : lsr);
  generate
    if (MODE == "IDDRX1_ODDRX1") begin
      ODDRX1F u_double (.SCLK(clock), .RST(reset), .D0(first), .D1(second), .Q(q));
    end else begin
      TW_NO_MODEL_OF_THIS_REGISTER_OF_A_PIN u_none ();
    end
  endgenerate
endmodule

// The multiplier of 18 x 18 bits, with input, pipeline and output registers, each with one of four clocks or bypassed.
module MULT18X18D (
  input
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0, B17, B16, B15, B14, B13, B12, B11,
    B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0, C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3,
    C2, C1, C0, SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK3, CLK2, CLK1, CLK0, CE3, CE2, CE1, CE0, RST3, RST2, RST1, RST0,
    SRIA17, SRIA16, SRIA15, SRIA14, SRIA13, SRIA12, SRIA11, SRIA10, SRIA9, SRIA8, SRIA7, SRIA6, SRIA5, SRIA4, SRIA3,
    SRIA2, SRIA1, SRIA0, SRIB17, SRIB16, SRIB15, SRIB14, SRIB13, SRIB12, SRIB11, SRIB10, SRIB9, SRIB8, SRIB7, SRIB6,
    SRIB5, SRIB4, SRIB3, SRIB2, SRIB1, SRIB0,
  output
    SROA17, SROA16, SROA15, SROA14, SROA13, SROA12, SROA11, SROA10, SROA9, SROA8, SROA7, SROA6, SROA5, SROA4, SROA3,
    SROA2, SROA1, SROA0, SROB17, SROB16, SROB15, SROB14, SROB13, SROB12, SROB11, SROB10, SROB9, SROB8, SROB7, SROB6,
    SROB5, SROB4, SROB3, SROB2, SROB1, SROB0, ROA17, ROA16, ROA15, ROA14, ROA13, ROA12, ROA11, ROA10, ROA9, ROA8, ROA7,
    ROA6, ROA5, ROA4, ROA3, ROA2, ROA1, ROA0, ROB17, ROB16, ROB15, ROB14, ROB13, ROB12, ROB11, ROB10, ROB9, ROB8, ROB7,
    ROB6, ROB5, ROB4, ROB3, ROB2, ROB1, ROB0, ROC17, ROC16, ROC15, ROC14, ROC13, ROC12, ROC11, ROC10, ROC9, ROC8, ROC7,
    ROC6, ROC5, ROC4, ROC3, ROC2, ROC1, ROC0, P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22,
    P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0, SIGNEDP
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTA_CE = "CE0";
  parameter REG_INPUTA_RST = "RST0";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_INPUTB_CE = "CE0";
  parameter REG_INPUTB_RST = "RST0";
  parameter REG_INPUTC_CLK = "NONE";
  parameter REG_INPUTC_CE = "CE0";
  parameter REG_INPUTC_RST = "RST0";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_PIPELINE_CE = "CE0";
  parameter REG_PIPELINE_RST = "RST0";
  parameter REG_OUTPUT_CLK = "NONE";
  parameter REG_OUTPUT_CE = "CE0";
  parameter REG_OUTPUT_RST = "RST0";
  parameter CLK0_DIV = "ENABLED";
  parameter CLK1_DIV = "ENABLED";
  parameter CLK2_DIV = "ENABLED";
  parameter CLK3_DIV = "ENABLED";
  parameter HIGHSPEED_CLK = "NONE";
  parameter GSR = "ENABLED";
  parameter CAS_MATCH_REG = "FALSE";
  parameter SOURCEB_MODE = "B_SHIFT";
  parameter MULT_BYPASS = "DISABLED";
  parameter RESETMODE = "SYNC";
  parameter CLK0MUX = "CLK0";
  parameter CE0MUX = "CE0";
  parameter RST0MUX = "RST0";
  parameter CLK1MUX = "CLK1";
  parameter CE1MUX = "CE1";
  parameter RST1MUX = "RST1";
  parameter CLK2MUX = "CLK2";
  parameter CE2MUX = "CE2";
  parameter RST2MUX = "RST2";
  parameter CLK3MUX = "CLK3";
  parameter CE3MUX = "CE3";
  parameter RST3MUX = "RST3";

  // Operands come from the block's own pins: our designs leave SOURCEA and SOURCEB low or open.
  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  generate
    if (MULT_BYPASS != "DISABLED" || SOURCEB_MODE != "B_SHIFT" || HIGHSPEED_CLK != "NONE" || REG_INPUTC_CLK != "NONE") begin
      TW_NO_MODEL_OF_THIS_USE_OF_A_MULTIPLIER u_none ();
    end
  endgenerate
  wire [17:0] a1, b1;
  wire signed1a, signed1b;
  wire signed [18:0] wide_a = {signed1a && a1[17], a1};
  wire signed [18:0] wide_b = {signed1b && b1[17], b1};
  wire signed [37:0] product = wide_a * wide_b;
  wire [35:0] p1, p;
  wire [3:0] clocks = {CLK3, CLK2, CLK1, CLK0} ^ {CLK3MUX == "INV", CLK2MUX == "INV", CLK1MUX == "INV", CLK0MUX == "INV"};
  wire [3:0] enables = {CE3, CE2, CE1, CE0} ^ {CE3MUX == "INV", CE2MUX == "INV", CE1MUX == "INV", CE0MUX == "INV"};
  wire [3:0] resets = {RST3, RST2, RST1, RST0} ^ {RST3MUX == "INV", RST2MUX == "INV", RST1MUX == "INV", RST0MUX == "INV"};
  TW_MULT_REG #(.W(19), .CLK(REG_INPUTA_CLK), .CE(REG_INPUTA_CE), .RST(REG_INPUTA_RST), .RESETMODE(RESETMODE)) u_a
    (.clocks(clocks), .enables(enables), .resets(resets), .d({SIGNEDA, a}), .q({signed1a, a1}));
  TW_MULT_REG #(.W(19), .CLK(REG_INPUTB_CLK), .CE(REG_INPUTB_CE), .RST(REG_INPUTB_RST), .RESETMODE(RESETMODE)) u_b
    (.clocks(clocks), .enables(enables), .resets(resets), .d({SIGNEDB, b}), .q({signed1b, b1}));
  TW_MULT_REG #(.W(36), .CLK(REG_PIPELINE_CLK), .CE(REG_PIPELINE_CE), .RST(REG_PIPELINE_RST), .RESETMODE(RESETMODE)) u_pipeline
    (.clocks(clocks), .enables(enables), .resets(resets), .d(product[35:0]), .q(p1));
  TW_MULT_REG #(.W(36), .CLK(REG_OUTPUT_CLK), .CE(REG_OUTPUT_CE), .RST(REG_OUTPUT_RST), .RESETMODE(RESETMODE)) u_output
    (.clocks(clocks), .enables(enables), .resets(resets), .d(p1), .q(p));
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13,
    P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = p;
endmodule

// A register of the multiplier, or a wire if it has no clock. In the designs that are checked, registers of the same
// clock drive an asynchronous reset, so it lasts until the next edge and is modeled there.
module TW_MULT_REG #(
  parameter W = 1,
  parameter CLK = "NONE",
  parameter CE = "CE0",
  parameter RST = "RST0",
  parameter RESETMODE = "SYNC"
) (
  input [3:0] clocks, input [3:0] enables, input [3:0] resets, input [W-1:0] d, output [W-1:0] q
);
  wire clock = CLK == "CLK3" ? clocks[3] : CLK == "CLK2" ? clocks[2] : CLK == "CLK1" ? clocks[1] : clocks[0];
  wire enable = CE == "CE3" ? enables[3] : CE == "CE2" ? enables[2] : CE == "CE1" ? enables[1] : enables[0];
  wire reset = RST == "RST3" ? resets[3] : RST == "RST2" ? resets[2] : RST == "RST1" ? resets[1] : resets[0];
  generate
    if (CLK == "NONE") begin
      assign q = d;
    end else begin
      reg [W-1:0] kept = 0;
      always @(posedge clock)
        if (reset) kept <= 0;
        else if (enable) kept <= d;
      assign q = RESETMODE == "ASYNC" && reset ? {W{1'b0}} : kept;
    end
  endgenerate
endmodule

// The block RAM of 18 Kbit. A port of 36 bits writes through side A and reads through side B; the data pins of side B
// carry the upper half. An asynchronous reset is treated like that of the multiplier.
module DP16KD (
  input
    DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0,
    ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0, CEA, OCEA, CLKA, WEA, RSTA,
    CSA2, CSA1, CSA0, DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3,
    DIB2, DIB1, DIB0, ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0, CEB,
    OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output
    DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
    DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
  parameter DATA_WIDTH_A = 18;
  parameter DATA_WIDTH_B = 18;
  parameter REGMODE_A = "NOREG";
  parameter REGMODE_B = "NOREG";
  parameter RESETMODE = "SYNC";
  parameter ASYNC_RESET_RELEASE = "SYNC";
  parameter [39:0] CSDECODE_A = "0b000";
  parameter [39:0] CSDECODE_B = "0b000";
  parameter WRITEMODE_A = "NORMAL";
  parameter WRITEMODE_B = "NORMAL";
  parameter GSR = "ENABLED";
  parameter INIT_DATA = "STATIC";
  parameter WID = "0";
  parameter DIA17MUX = "DIA17";
  parameter DIA16MUX = "DIA16";
  parameter DIA15MUX = "DIA15";
  parameter DIA14MUX = "DIA14";
  parameter DIA13MUX = "DIA13";
  parameter DIA12MUX = "DIA12";
  parameter DIA11MUX = "DIA11";
  parameter DIA10MUX = "DIA10";
  parameter DIA9MUX = "DIA9";
  parameter DIA8MUX = "DIA8";
  parameter DIA7MUX = "DIA7";
  parameter DIA6MUX = "DIA6";
  parameter DIA5MUX = "DIA5";
  parameter DIA4MUX = "DIA4";
  parameter DIA3MUX = "DIA3";
  parameter DIA2MUX = "DIA2";
  parameter DIA1MUX = "DIA1";
  parameter DIA0MUX = "DIA0";
  parameter ADA13MUX = "ADA13";
  parameter ADA12MUX = "ADA12";
  parameter ADA11MUX = "ADA11";
  parameter ADA10MUX = "ADA10";
  parameter ADA9MUX = "ADA9";
  parameter ADA8MUX = "ADA8";
  parameter ADA7MUX = "ADA7";
  parameter ADA6MUX = "ADA6";
  parameter ADA5MUX = "ADA5";
  parameter ADA4MUX = "ADA4";
  parameter ADA3MUX = "ADA3";
  parameter ADA2MUX = "ADA2";
  parameter ADA1MUX = "ADA1";
  parameter ADA0MUX = "ADA0";
  parameter CEAMUX = "CEA";
  parameter OCEAMUX = "OCEA";
  parameter CLKAMUX = "CLKA";
  parameter WEAMUX = "WEA";
  parameter RSTAMUX = "RSTA";
  parameter CSA2MUX = "CSA2";
  parameter CSA1MUX = "CSA1";
  parameter CSA0MUX = "CSA0";
  parameter DOA17MUX = "DOA17";
  parameter DOA16MUX = "DOA16";
  parameter DOA15MUX = "DOA15";
  parameter DOA14MUX = "DOA14";
  parameter DOA13MUX = "DOA13";
  parameter DOA12MUX = "DOA12";
  parameter DOA11MUX = "DOA11";
  parameter DOA10MUX = "DOA10";
  parameter DOA9MUX = "DOA9";
  parameter DOA8MUX = "DOA8";
  parameter DOA7MUX = "DOA7";
  parameter DOA6MUX = "DOA6";
  parameter DOA5MUX = "DOA5";
  parameter DOA4MUX = "DOA4";
  parameter DOA3MUX = "DOA3";
  parameter DOA2MUX = "DOA2";
  parameter DOA1MUX = "DOA1";
  parameter DOA0MUX = "DOA0";
  parameter DIB17MUX = "DIB17";
  parameter DIB16MUX = "DIB16";
  parameter DIB15MUX = "DIB15";
  parameter DIB14MUX = "DIB14";
  parameter DIB13MUX = "DIB13";
  parameter DIB12MUX = "DIB12";
  parameter DIB11MUX = "DIB11";
  parameter DIB10MUX = "DIB10";
  parameter DIB9MUX = "DIB9";
  parameter DIB8MUX = "DIB8";
  parameter DIB7MUX = "DIB7";
  parameter DIB6MUX = "DIB6";
  parameter DIB5MUX = "DIB5";
  parameter DIB4MUX = "DIB4";
  parameter DIB3MUX = "DIB3";
  parameter DIB2MUX = "DIB2";
  parameter DIB1MUX = "DIB1";
  parameter DIB0MUX = "DIB0";
  parameter ADB13MUX = "ADB13";
  parameter ADB12MUX = "ADB12";
  parameter ADB11MUX = "ADB11";
  parameter ADB10MUX = "ADB10";
  parameter ADB9MUX = "ADB9";
  parameter ADB8MUX = "ADB8";
  parameter ADB7MUX = "ADB7";
  parameter ADB6MUX = "ADB6";
  parameter ADB5MUX = "ADB5";
  parameter ADB4MUX = "ADB4";
  parameter ADB3MUX = "ADB3";
  parameter ADB2MUX = "ADB2";
  parameter ADB1MUX = "ADB1";
  parameter ADB0MUX = "ADB0";
  parameter CEBMUX = "CEB";
  parameter OCEBMUX = "OCEB";
  parameter CLKBMUX = "CLKB";
  parameter WEBMUX = "WEB";
  parameter RSTBMUX = "RSTB";
  parameter CSB2MUX = "CSB2";
  parameter CSB1MUX = "CSB1";
  parameter CSB0MUX = "CSB0";
  parameter DOB17MUX = "DOB17";
  parameter DOB16MUX = "DOB16";
  parameter DOB15MUX = "DOB15";
  parameter DOB14MUX = "DOB14";
  parameter DOB13MUX = "DOB13";
  parameter DOB12MUX = "DOB12";
  parameter DOB11MUX = "DOB11";
  parameter DOB10MUX = "DOB10";
  parameter DOB9MUX = "DOB9";
  parameter DOB8MUX = "DOB8";
  parameter DOB7MUX = "DOB7";
  parameter DOB6MUX = "DOB6";
  parameter DOB5MUX = "DOB5";
  parameter DOB4MUX = "DOB4";
  parameter DOB3MUX = "DOB3";
  parameter DOB2MUX = "DOB2";
  parameter DOB1MUX = "DOB1";
  parameter DOB0MUX = "DOB0";
  parameter [319:0] INITVAL_00 = 320'd0;
  parameter [319:0] INITVAL_01 = 320'd0;
  parameter [319:0] INITVAL_02 = 320'd0;
  parameter [319:0] INITVAL_03 = 320'd0;
  parameter [319:0] INITVAL_04 = 320'd0;
  parameter [319:0] INITVAL_05 = 320'd0;
  parameter [319:0] INITVAL_06 = 320'd0;
  parameter [319:0] INITVAL_07 = 320'd0;
  parameter [319:0] INITVAL_08 = 320'd0;
  parameter [319:0] INITVAL_09 = 320'd0;
  parameter [319:0] INITVAL_0A = 320'd0;
  parameter [319:0] INITVAL_0B = 320'd0;
  parameter [319:0] INITVAL_0C = 320'd0;
  parameter [319:0] INITVAL_0D = 320'd0;
  parameter [319:0] INITVAL_0E = 320'd0;
  parameter [319:0] INITVAL_0F = 320'd0;
  parameter [319:0] INITVAL_10 = 320'd0;
  parameter [319:0] INITVAL_11 = 320'd0;
  parameter [319:0] INITVAL_12 = 320'd0;
  parameter [319:0] INITVAL_13 = 320'd0;
  parameter [319:0] INITVAL_14 = 320'd0;
  parameter [319:0] INITVAL_15 = 320'd0;
  parameter [319:0] INITVAL_16 = 320'd0;
  parameter [319:0] INITVAL_17 = 320'd0;
  parameter [319:0] INITVAL_18 = 320'd0;
  parameter [319:0] INITVAL_19 = 320'd0;
  parameter [319:0] INITVAL_1A = 320'd0;
  parameter [319:0] INITVAL_1B = 320'd0;
  parameter [319:0] INITVAL_1C = 320'd0;
  parameter [319:0] INITVAL_1D = 320'd0;
  parameter [319:0] INITVAL_1E = 320'd0;
  parameter [319:0] INITVAL_1F = 320'd0;
  parameter [319:0] INITVAL_20 = 320'd0;
  parameter [319:0] INITVAL_21 = 320'd0;
  parameter [319:0] INITVAL_22 = 320'd0;
  parameter [319:0] INITVAL_23 = 320'd0;
  parameter [319:0] INITVAL_24 = 320'd0;
  parameter [319:0] INITVAL_25 = 320'd0;
  parameter [319:0] INITVAL_26 = 320'd0;
  parameter [319:0] INITVAL_27 = 320'd0;
  parameter [319:0] INITVAL_28 = 320'd0;
  parameter [319:0] INITVAL_29 = 320'd0;
  parameter [319:0] INITVAL_2A = 320'd0;
  parameter [319:0] INITVAL_2B = 320'd0;
  parameter [319:0] INITVAL_2C = 320'd0;
  parameter [319:0] INITVAL_2D = 320'd0;
  parameter [319:0] INITVAL_2E = 320'd0;
  parameter [319:0] INITVAL_2F = 320'd0;
  parameter [319:0] INITVAL_30 = 320'd0;
  parameter [319:0] INITVAL_31 = 320'd0;
  parameter [319:0] INITVAL_32 = 320'd0;
  parameter [319:0] INITVAL_33 = 320'd0;
  parameter [319:0] INITVAL_34 = 320'd0;
  parameter [319:0] INITVAL_35 = 320'd0;
  parameter [319:0] INITVAL_36 = 320'd0;
  parameter [319:0] INITVAL_37 = 320'd0;
  parameter [319:0] INITVAL_38 = 320'd0;
  parameter [319:0] INITVAL_39 = 320'd0;
  parameter [319:0] INITVAL_3A = 320'd0;
  parameter [319:0] INITVAL_3B = 320'd0;
  parameter [319:0] INITVAL_3C = 320'd0;
  parameter [319:0] INITVAL_3D = 320'd0;
  parameter [319:0] INITVAL_3E = 320'd0;
  parameter [319:0] INITVAL_3F = 320'd0;

  // Not modeled: output registers and initial contents.
  generate
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG") begin
      TW_NO_MODEL_OF_AN_OUTPUT_REGISTER_OF_A_BLOCK_RAM u_none ();
    end
    if ({
    INITVAL_00, INITVAL_01, INITVAL_02, INITVAL_03, INITVAL_04, INITVAL_05, INITVAL_06, INITVAL_07, INITVAL_08, INITVAL_09,
    INITVAL_0A, INITVAL_0B, INITVAL_0C, INITVAL_0D, INITVAL_0E, INITVAL_0F, INITVAL_10, INITVAL_11, INITVAL_12, INITVAL_13,
    INITVAL_14, INITVAL_15, INITVAL_16, INITVAL_17, INITVAL_18, INITVAL_19, INITVAL_1A, INITVAL_1B, INITVAL_1C, INITVAL_1D,
    INITVAL_1E, INITVAL_1F, INITVAL_20, INITVAL_21, INITVAL_22, INITVAL_23, INITVAL_24, INITVAL_25, INITVAL_26, INITVAL_27,
    INITVAL_28, INITVAL_29, INITVAL_2A, INITVAL_2B, INITVAL_2C, INITVAL_2D, INITVAL_2E, INITVAL_2F, INITVAL_30, INITVAL_31,
    INITVAL_32, INITVAL_33, INITVAL_34, INITVAL_35, INITVAL_36, INITVAL_37, INITVAL_38, INITVAL_39, INITVAL_3A, INITVAL_3B,
    INITVAL_3C, INITVAL_3D, INITVAL_3E, INITVAL_3F
    } != 20480'd0) begin
      TW_NO_MODEL_OF_FIRST_CONTENTS_OF_A_BLOCK_RAM u_none ();
    end
  endgenerate

  // Bytes of nine bits; ports narrower than a byte access eight of them.
  reg [8:0] memory [0:2047];
  wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [2:0] csa = {CSA2, CSA1, CSA0} ^ {CSA2MUX == "INV", CSA1MUX == "INV", CSA0MUX == "INV"};
  wire selecta = csa == {CSDECODE_A[16], CSDECODE_A[8], CSDECODE_A[0]};
  wire cea = (CEAMUX == "1" || (CEAMUX == "INV" ? !CEA : CEA)) && selecta;
  wire wea = WEAMUX == "1" || (WEAMUX == "INV" ? !WEA : WEA);
  wire rsta = RSTAMUX == "1" || (RSTAMUX == "INV" ? !RSTA : RSTA);
  wire clka = CLKAMUX == "INV" ? !CLKA : CLKA;
  wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [2:0] csb = {CSB2, CSB1, CSB0} ^ {CSB2MUX == "INV", CSB1MUX == "INV", CSB0MUX == "INV"};
  wire selectb = csb == {CSDECODE_B[16], CSDECODE_B[8], CSDECODE_B[0]};
  wire ceb = (CEBMUX == "1" || (CEBMUX == "INV" ? !CEB : CEB)) && selectb;
  wire web = WEBMUX == "1" || (WEBMUX == "INV" ? !WEB : WEB);
  wire rstb = RSTBMUX == "1" || (RSTBMUX == "INV" ? !RSTB : RSTB);
  wire clkb = CLKBMUX == "INV" ? !CLKB : CLKB;

  // The first byte of an access, the bits of it that a narrow port accesses, and a narrow port's data at their
  // position.
  wire [10:0] first_a = DATA_WIDTH_A == 36 ? {ada[13:5], 2'b00} : DATA_WIDTH_A == 18 ? {ada[13:4], 1'b0} : ada[13:3];
  wire [10:0] first_b = DATA_WIDTH_B == 36 ? {adb[13:5], 2'b00} : DATA_WIDTH_B == 18 ? {adb[13:4], 1'b0} : adb[13:3];
  wire [2:0] bit_a = DATA_WIDTH_A == 4 ? {ada[2], 2'b00} : DATA_WIDTH_A == 2 ? {ada[2:1], 1'b0} : DATA_WIDTH_A == 1 ? ada[2:0] : 3'd0;
  wire [2:0] bit_b = DATA_WIDTH_B == 4 ? {adb[2], 2'b00} : DATA_WIDTH_B == 2 ? {adb[2:1], 1'b0} : DATA_WIDTH_B == 1 ? adb[2:0] : 3'd0;
  wire [8:0] mask_a = DATA_WIDTH_A >= 9 ? 9'h1ff : ((9'd1 << DATA_WIDTH_A) - 9'd1) << bit_a;
  wire [8:0] mask_b = DATA_WIDTH_B >= 9 ? 9'h1ff : ((9'd1 << DATA_WIDTH_B) - 9'd1) << bit_b;

  // Writes: a wide port's byte enables are its low address bits. The data pins of side B carry the upper half of 36
  // bits.
  wire [3:0] bytes_a = !(cea && wea) ? 4'd0 : DATA_WIDTH_A == 36 ? ada[3:0] : DATA_WIDTH_A == 18 ? {2'd0, ada[1:0]} : 4'd1;
  wire [1:0] bytes_b = !(ceb && web) ? 2'd0 : DATA_WIDTH_B == 18 ? adb[1:0] : 2'd1;
  always @(posedge clka) begin
    if (bytes_a[0]) memory[first_a] <= (memory[first_a] & ~mask_a) | ((dia[8:0] << bit_a) & mask_a);
    if (bytes_a[1]) memory[first_a | 11'd1] <= dia[17:9];
    if (bytes_a[2]) memory[first_a | 11'd2] <= dib[8:0];
    if (bytes_a[3]) memory[first_a | 11'd3] <= dib[17:9];
  end
  generate
    if (DATA_WIDTH_B != 36) begin
      always @(posedge clkb) begin
        if (bytes_b[0]) memory[first_b] <= (memory[first_b] & ~mask_b) | ((dib[8:0] << bit_b) & mask_b);
        if (bytes_b[1]) memory[first_b | 11'd1] <= dib[17:9];
      end
    end
  endgenerate

  // Reads. If the same port also writes: the old data, the new data, or the output keeps its value.
  reg [17:0] out_a = 0;
  reg [35:0] out_b = 0;
  wire [17:0] old_a = DATA_WIDTH_A == 18 ? {memory[first_a | 11'd1], memory[first_a]} : {9'd0, memory[first_a] >> bit_a};
  wire [35:0] old_b = DATA_WIDTH_B == 36
    ? {memory[first_b | 11'd3], memory[first_b | 11'd2], memory[first_b | 11'd1], memory[first_b]}
    : DATA_WIDTH_B == 18 ? {18'd0, memory[first_b | 11'd1], memory[first_b]} : {27'd0, memory[first_b] >> bit_b};
  wire [17:0] new_a = {bytes_a[1] ? dia[17:9] : old_a[17:9], bytes_a[0] ? dia[8:0] : old_a[8:0]};
  wire [17:0] new_b = {bytes_b[1] ? dib[17:9] : old_b[17:9], bytes_b[0] ? dib[8:0] : old_b[8:0]};
  always @(posedge clka) begin
    if (rsta) out_a <= 0;
    else if (cea && wea && WRITEMODE_A == "WRITETHROUGH") out_a <= new_a;
    else if (cea && !(wea && WRITEMODE_A == "NORMAL")) out_a <= old_a;
  end
  always @(posedge clkb) begin
    if (rstb) out_b <= 0;
    else if (ceb && web && WRITEMODE_B == "WRITETHROUGH") out_b <= {18'd0, new_b};
    else if (ceb && !(web && WRITEMODE_B == "NORMAL")) out_b <= old_b;
  end
  wire [17:0] now_a = RESETMODE == "ASYNC" && rsta ? 18'd0 : out_a;
  wire [35:0] now_b = RESETMODE == "ASYNC" && rstb ? 36'd0 : out_b;
  wire [17:0] do_a = DATA_WIDTH_B == 36 ? now_b[17:0] : now_a;
  wire [17:0] do_b = DATA_WIDTH_B == 36 ? now_b[35:18] : now_b[17:0];
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = do_a;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = do_b;
endmodule

// A look-up table of a routed netlist: logic, half of a carry pair, or a bit of a distributed RAM.
module TRELLIS_COMB (
  input A, B, C, D, M, FCI, F1, FXA, FXB, WD, WAD0, WAD1, WAD2, WAD3, WRE, WCK, DI0, DI1,
  output F, FCO, OFX
);
  parameter MODE = "LOGIC";
  parameter INITVAL = 16'h0;
  parameter CCU2_INJECT1 = "NO";
  parameter WREMUX = "WRE";
  parameter WCKMUX = "WCK";
  parameter IS_Z1 = 1'b0;
  parameter A1MUX = "A1";
  parameter B1MUX = "B1";
  parameter C1MUX = "C1";
  parameter D1MUX = "D1";
  wire [15:0] table_bits = INITVAL;
  wire four = table_bits[{D, C, B, A}];
  wire two = table_bits[{2'b00, B, A}];
  wire carry = CCU2_INJECT1 == "YES" ? 1'b0 : FCI;
  reg [15:0] ram = INITVAL;
  wire write = WREMUX == "1" || (WREMUX == "INV" ? !WRE : WREMUX == "WRE" && WRE);
  wire clock = WCKMUX == "INV" ? !WCK : WCK;
  generate
    if (MODE == "DPRAM") begin
      always @(posedge clock) if (write) ram[{WAD3, WAD2, WAD1, WAD0}] <= WD;
      // The read address has the same bit order as the write address.
      assign F = ram[{A, C, B, D}];
    end else if (MODE == "CCU2") begin
      assign F = four ^ carry;
      assign FCO = four ? FCI : (CCU2_INJECT1 == "YES" ? 1'b0 : two);
    end else begin
      assign F = four;
    end
    if (IS_Z1) begin
      assign OFX = M ? FXB : FXA;
    end else begin
      assign OFX = M ? F1 : F;
    end
  endgenerate
endmodule

// The write port of distributed RAM: passes its data and address on to the look-up tables.
module TRELLIS_RAMW (
  input A0, B0, C0, D0, A1, B1, C1, D1,
  output WDO0, WDO1, WDO2, WDO3, WADO0, WADO1, WADO2, WADO3
);
  assign {WADO3, WADO2, WADO1, WADO0} = {A0, C0, B0, D0};
  assign {WDO3, WDO2, WDO1, WDO0} = {B1, D1, A1, C1};
endmodule

// A register. Its data come from a look-up table or, in a routed netlist, from a pin of its own. The enable may gate
// its reset.
module TRELLIS_FF (input CLK, LSR, CE, DI, M, output reg Q);
  parameter GSR = "ENABLED";
  parameter [127:0] CEMUX = "1";
  parameter CLKMUX = "CLK";
  parameter LSRMUX = "LSR";
  parameter SRMODE = "LSR_OVER_CE";
  parameter REGSET = "RESET";
  parameter [127:0] LSRMODE = "LSR";
  parameter SD = "1";
  wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CEMUX == "INV" ? !CE : CE;
  wire reset = LSRMUX == "INV" ? !LSR : LSR;
  wire clock = CLKMUX == "INV" ? !CLK : CLK;
  wire data = SD == "0" ? M : DI;
  wire value = REGSET == "SET";
  initial Q = REGSET == "SET";
  generate
    if (SRMODE == "ASYNC" || LSRMODE == "PRLD") begin
      TW_NO_MODEL_OF_ASYNCHRONOUS_RESET u_none ();
    end else begin
      always @(posedge clock)
        if (reset && (enable || SRMODE == "LSR_OVER_CE")) Q <= value;
        else if (enable) Q <= data;
    end
  endgenerate
endmodule
