// Delays of an ECP5's block RAM and multiplier in ps, for technology mapping. Without them, mapping assumes that their
// outputs are valid at the clock edge and that their inputs have the whole cycle. Names and parameters are ECP5's; the
// delays are those of hw/src/flow/family/ecp5.rs. The multiplier lists only the ports that synthesis connects:
// ports left open here are tied to 0, and some others have no path to an output.

(* blackbox *)
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
  parameter
    DATA_WIDTH_A = 0, DATA_WIDTH_B = 0, REGMODE_A = 0, REGMODE_B = 0, RESETMODE = 0, ASYNC_RESET_RELEASE = 0,
    CSDECODE_A = 0, CSDECODE_B = 0, WRITEMODE_A = 0, WRITEMODE_B = 0, CLKAMUX = 0, CLKBMUX = 0, GSR = 0,
    INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0, INITVAL_04 = 0, INITVAL_05 = 0, INITVAL_06 = 0,
    INITVAL_07 = 0, INITVAL_08 = 0, INITVAL_09 = 0, INITVAL_0A = 0, INITVAL_0B = 0, INITVAL_0C = 0, INITVAL_0D = 0,
    INITVAL_0E = 0, INITVAL_0F = 0, INITVAL_10 = 0, INITVAL_11 = 0, INITVAL_12 = 0, INITVAL_13 = 0, INITVAL_14 = 0,
    INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0, INITVAL_18 = 0, INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0,
    INITVAL_1C = 0, INITVAL_1D = 0, INITVAL_1E = 0, INITVAL_1F = 0, INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0,
    INITVAL_23 = 0, INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0, INITVAL_28 = 0, INITVAL_29 = 0,
    INITVAL_2A = 0, INITVAL_2B = 0, INITVAL_2C = 0, INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0, INITVAL_30 = 0,
    INITVAL_31 = 0, INITVAL_32 = 0, INITVAL_33 = 0, INITVAL_34 = 0, INITVAL_35 = 0, INITVAL_36 = 0, INITVAL_37 = 0,
    INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0, INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0,
    INITVAL_3F = 0, INIT_DATA = 0;
  specify
    (posedge CLKA => ({DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} : 18'd0)) = 4600;
    $setup(DIA17, posedge CLKA, 300);
    $setup(DIA16, posedge CLKA, 300);
    $setup(DIA15, posedge CLKA, 300);
    $setup(DIA14, posedge CLKA, 300);
    $setup(DIA13, posedge CLKA, 300);
    $setup(DIA12, posedge CLKA, 300);
    $setup(DIA11, posedge CLKA, 300);
    $setup(DIA10, posedge CLKA, 300);
    $setup(DIA9, posedge CLKA, 300);
    $setup(DIA8, posedge CLKA, 300);
    $setup(DIA7, posedge CLKA, 300);
    $setup(DIA6, posedge CLKA, 300);
    $setup(DIA5, posedge CLKA, 300);
    $setup(DIA4, posedge CLKA, 300);
    $setup(DIA3, posedge CLKA, 300);
    $setup(DIA2, posedge CLKA, 300);
    $setup(DIA1, posedge CLKA, 300);
    $setup(DIA0, posedge CLKA, 300);
    $setup(ADA13, posedge CLKA, 300);
    $setup(ADA12, posedge CLKA, 300);
    $setup(ADA11, posedge CLKA, 300);
    $setup(ADA10, posedge CLKA, 300);
    $setup(ADA9, posedge CLKA, 300);
    $setup(ADA8, posedge CLKA, 300);
    $setup(ADA7, posedge CLKA, 300);
    $setup(ADA6, posedge CLKA, 300);
    $setup(ADA5, posedge CLKA, 300);
    $setup(ADA4, posedge CLKA, 300);
    $setup(ADA3, posedge CLKA, 300);
    $setup(ADA2, posedge CLKA, 300);
    $setup(ADA1, posedge CLKA, 300);
    $setup(ADA0, posedge CLKA, 300);
    $setup(CEA, posedge CLKA, 300);
    $setup(WEA, posedge CLKA, 300);
    (posedge CLKB => ({DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} : 18'd0)) = 4600;
    $setup(DIB17, posedge CLKB, 300);
    $setup(DIB16, posedge CLKB, 300);
    $setup(DIB15, posedge CLKB, 300);
    $setup(DIB14, posedge CLKB, 300);
    $setup(DIB13, posedge CLKB, 300);
    $setup(DIB12, posedge CLKB, 300);
    $setup(DIB11, posedge CLKB, 300);
    $setup(DIB10, posedge CLKB, 300);
    $setup(DIB9, posedge CLKB, 300);
    $setup(DIB8, posedge CLKB, 300);
    $setup(DIB7, posedge CLKB, 300);
    $setup(DIB6, posedge CLKB, 300);
    $setup(DIB5, posedge CLKB, 300);
    $setup(DIB4, posedge CLKB, 300);
    $setup(DIB3, posedge CLKB, 300);
    $setup(DIB2, posedge CLKB, 300);
    $setup(DIB1, posedge CLKB, 300);
    $setup(DIB0, posedge CLKB, 300);
    $setup(ADB13, posedge CLKB, 300);
    $setup(ADB12, posedge CLKB, 300);
    $setup(ADB11, posedge CLKB, 300);
    $setup(ADB10, posedge CLKB, 300);
    $setup(ADB9, posedge CLKB, 300);
    $setup(ADB8, posedge CLKB, 300);
    $setup(ADB7, posedge CLKB, 300);
    $setup(ADB6, posedge CLKB, 300);
    $setup(ADB5, posedge CLKB, 300);
    $setup(ADB4, posedge CLKB, 300);
    $setup(ADB3, posedge CLKB, 300);
    $setup(ADB2, posedge CLKB, 300);
    $setup(ADB1, posedge CLKB, 300);
    $setup(ADB0, posedge CLKB, 300);
    $setup(CEB, posedge CLKB, 300);
    $setup(WEB, posedge CLKB, 300);
  endspecify
endmodule

(* abc9_box, blackbox *)
module MULT18X18D (
  input
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0, B17, B16, B15, B14, B13, B12, B11,
    B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0, C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3,
    C2, C1, C0, SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  output
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13,
    P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter
    REG_INPUTA_CLK = 0, REG_INPUTA_CE = 0, REG_INPUTA_RST = 0, REG_INPUTB_CLK = 0, REG_INPUTB_CE = 0,
    REG_INPUTB_RST = 0, REG_INPUTC_CLK = 0, REG_INPUTC_CE = 0, REG_INPUTC_RST = 0, REG_PIPELINE_CLK = 0,
    REG_PIPELINE_CE = 0, REG_PIPELINE_RST = 0, REG_OUTPUT_CLK = 0, REG_OUTPUT_CE = 0, REG_OUTPUT_RST = 0, CLK0_DIV = 0,
    CLK1_DIV = 0, CLK2_DIV = 0, CLK3_DIV = 0, HIGHSPEED_CLK = 0, GSR = 0, CAS_MATCH_REG = 0, SOURCEB_MODE = 0,
    MULT_BYPASS = 0, RESETMODE = 0;
  specify
    ({A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0, B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0} *>
      {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0}) = 3900;
  endspecify
endmodule
