// Compares the models of an ECP5's multiplier, block RAM and pin registers with the data sheet: products with each
// choice of registers, signed and unsigned; a memory of bits that ports of all widths write and read when selected;
// synchronous and asynchronous resets; two bits per cycle.

module mult_case #(
  parameter bit InputReg = 0,
  parameter bit PipelineReg = 0,
  parameter bit OutputReg = 0,
  parameter bit Inverted = 0,
  parameter bit Async = 0
) (
  input  logic        clk,
  input  logic        en,
  input  logic        rst,
  input  logic        is_signed,
  input  logic [17:0] a,
  input  logic [17:0] b,
  output int unsigned wrong
);
  logic [35:0] p, expected;
  MULT18X18D #(
    .REG_INPUTA_CLK(InputReg ? "CLK0" : "NONE"), .REG_INPUTB_CLK(InputReg ? "CLK0" : "NONE"),
    .REG_PIPELINE_CLK(PipelineReg ? "CLK0" : "NONE"), .REG_OUTPUT_CLK(OutputReg ? "CLK0" : "NONE"),
    .CE0MUX(Inverted ? "INV" : "CE0"), .RST0MUX(Inverted ? "INV" : "RST0"), .RESETMODE(Async ? "ASYNC" : "SYNC")
  ) u_block (
    .CLK0(clk), .CE0(en ^ Inverted), .RST0(rst ^ Inverted), .SIGNEDA(is_signed), .SIGNEDB(is_signed), .SOURCEA(1'b0), .SOURCEB(1'b0),
    .A17(a[17]), .A16(a[16]), .A15(a[15]), .A14(a[14]), .A13(a[13]), .A12(a[12]), .A11(a[11]), .A10(a[10]), .A9(a[9]),
    .A8(a[8]), .A7(a[7]), .A6(a[6]), .A5(a[5]), .A4(a[4]), .A3(a[3]), .A2(a[2]), .A1(a[1]), .A0(a[0]),
    .B17(b[17]), .B16(b[16]), .B15(b[15]), .B14(b[14]), .B13(b[13]), .B12(b[12]), .B11(b[11]), .B10(b[10]), .B9(b[9]),
    .B8(b[8]), .B7(b[7]), .B6(b[6]), .B5(b[5]), .B4(b[4]), .B3(b[3]), .B2(b[2]), .B1(b[1]), .B0(b[0]),
    .P35(p[35]), .P34(p[34]), .P33(p[33]), .P32(p[32]), .P31(p[31]), .P30(p[30]), .P29(p[29]), .P28(p[28]), .P27(p[27]),
    .P26(p[26]), .P25(p[25]), .P24(p[24]), .P23(p[23]), .P22(p[22]), .P21(p[21]), .P20(p[20]), .P19(p[19]), .P18(p[18]),
    .P17(p[17]), .P16(p[16]), .P15(p[15]), .P14(p[14]), .P13(p[13]), .P12(p[12]), .P11(p[11]), .P10(p[10]), .P9(p[9]),
    .P8(p[8]), .P7(p[7]), .P6(p[6]), .P5(p[5]), .P4(p[4]), .P3(p[3]), .P2(p[2]), .P1(p[1]), .P0(p[0])
  );
  // A chain of as many registers.
  logic [36:0] in_q [2];
  logic [35:0] product, middle_q, out_q;
  logic [36:0] operands;
  assign operands = InputReg ? in_q[0] : {is_signed, a, b};
  assign product = operands[36] ? 36'($signed({{18{operands[35]}}, operands[35:18]}) * $signed({{18{operands[17]}}, operands[17:0]}))
                                : 36'({18'd0, operands[35:18]} * {18'd0, operands[17:0]});
  logic [35:0] middle;
  assign middle   = PipelineReg ? middle_q : product;
  assign expected = OutputReg ? out_q : middle;
  // An asynchronous reset shows before the clock edge, after every register.
  logic [35:0] seen;
  assign seen = Async && rst && (OutputReg || PipelineReg || InputReg) ? '0 : expected;
  initial begin
    in_q[0] = '0;
    middle_q = '0;
    out_q = '0;
    wrong = 0;
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      in_q[0]  <= '0;
      middle_q <= '0;
      out_q    <= '0;
    end else if (en) begin
      in_q[0]  <= {is_signed, a, b};
      middle_q <= product;
      out_q    <= middle;
    end
  end
  always @(negedge clk) if (p != expected) wrong = wrong + 1;
  always @(posedge clk) if (Async && p != seen) wrong = wrong + 1;
endmodule

// Side A writes in one width, side B reads in another.
module ram_case #(
  parameter int unsigned WriteW = 18,
  parameter int unsigned ReadW = 18,
  parameter logic [2:0] Select = 0,
  parameter bit Async = 0
) (
  input  logic        clk,
  input  logic        we,
  input  logic [13:0] waddr,
  input  logic [35:0] wdata,
  input  logic        re,
  input  logic        rst,
  input  logic [13:0] raddr,
  input  logic [2:0]  cs,
  output int unsigned wrong
);
  localparam logic [39:0] Decode = {"0b", 8'd48 + 8'(Select[2]), 8'd48 + 8'(Select[1]), 8'd48 + 8'(Select[0])};
  // The low address bits of a wide port are the byte enables.
  localparam int unsigned WriteUnits = WriteW == 36 ? 4 : WriteW == 18 ? 2 : 1;
  localparam int unsigned ReadUnits = ReadW == 36 ? 4 : ReadW == 18 ? 2 : 1;
  logic [17:0] doa, dob, dia, dib;
  logic [13:0] ada, adb;
  assign ada = waddr;
  assign adb = raddr;
  assign dia = wdata[17:0];
  assign dib = WriteW == 36 ? wdata[35:18] : '0;
  DP16KD #(
    .DATA_WIDTH_A(WriteW), .DATA_WIDTH_B(ReadW), .REGMODE_A("NOREG"), .REGMODE_B("NOREG"), .WRITEMODE_A("NORMAL"),
    .WRITEMODE_B("NORMAL"), .CSDECODE_A(Decode), .CSDECODE_B(Decode), .CSA1MUX("INV"), .RESETMODE(Async ? "ASYNC" : "SYNC")
  ) u_ram (
    .CLKA(clk), .CEA(we), .WEA(we), .OCEA(1'b1), .RSTA(1'b0), .CSA0(cs[0]), .CSA1(!cs[1]), .CSA2(cs[2]),
    .CLKB(clk), .CEB(re), .WEB(1'b0), .OCEB(1'b1), .RSTB(rst), .CSB0(cs[0]), .CSB1(cs[1]), .CSB2(cs[2]),
    .DIA17(dia[17]), .DIA16(dia[16]), .DIA15(dia[15]), .DIA14(dia[14]), .DIA13(dia[13]), .DIA12(dia[12]), .DIA11(dia[11]),
    .DIA10(dia[10]), .DIA9(dia[9]), .DIA8(dia[8]), .DIA7(dia[7]), .DIA6(dia[6]), .DIA5(dia[5]), .DIA4(dia[4]), .DIA3(dia[3]),
    .DIA2(dia[2]), .DIA1(dia[1]), .DIA0(dia[0]),
    .DIB17(dib[17]), .DIB16(dib[16]), .DIB15(dib[15]), .DIB14(dib[14]), .DIB13(dib[13]), .DIB12(dib[12]), .DIB11(dib[11]),
    .DIB10(dib[10]), .DIB9(dib[9]), .DIB8(dib[8]), .DIB7(dib[7]), .DIB6(dib[6]), .DIB5(dib[5]), .DIB4(dib[4]), .DIB3(dib[3]),
    .DIB2(dib[2]), .DIB1(dib[1]), .DIB0(dib[0]),
    .ADA13(ada[13]), .ADA12(ada[12]), .ADA11(ada[11]), .ADA10(ada[10]), .ADA9(ada[9]), .ADA8(ada[8]), .ADA7(ada[7]),
    .ADA6(ada[6]), .ADA5(ada[5]), .ADA4(ada[4]), .ADA3(ada[3]), .ADA2(ada[2]), .ADA1(ada[1]), .ADA0(ada[0]),
    .ADB13(adb[13]), .ADB12(adb[12]), .ADB11(adb[11]), .ADB10(adb[10]), .ADB9(adb[9]), .ADB8(adb[8]), .ADB7(adb[7]),
    .ADB6(adb[6]), .ADB5(adb[5]), .ADB4(adb[4]), .ADB3(adb[3]), .ADB2(adb[2]), .ADB1(adb[1]), .ADB0(adb[0]),
    .DOA17(doa[17]), .DOA16(doa[16]), .DOA15(doa[15]), .DOA14(doa[14]), .DOA13(doa[13]), .DOA12(doa[12]), .DOA11(doa[11]),
    .DOA10(doa[10]), .DOA9(doa[9]), .DOA8(doa[8]), .DOA7(doa[7]), .DOA6(doa[6]), .DOA5(doa[5]), .DOA4(doa[4]), .DOA3(doa[3]),
    .DOA2(doa[2]), .DOA1(doa[1]), .DOA0(doa[0]),
    .DOB17(dob[17]), .DOB16(dob[16]), .DOB15(dob[15]), .DOB14(dob[14]), .DOB13(dob[13]), .DOB12(dob[12]), .DOB11(dob[11]),
    .DOB10(dob[10]), .DOB9(dob[9]), .DOB8(dob[8]), .DOB7(dob[7]), .DOB6(dob[6]), .DOB5(dob[5]), .DOB4(dob[4]), .DOB3(dob[3]),
    .DOB2(dob[2]), .DOB1(dob[1]), .DOB0(dob[0])
  );

  // Bit by bit: a byte has nine, of which ports narrower than nine reach eight.
  logic [17:0] bits [1024];
  logic [35:0] expected, read;
  function automatic int unsigned place(input int unsigned width, input logic [13:0] addr, input int unsigned i);
    int unsigned bytes;
    if (width >= 9) begin
      bytes = 32'(addr) / 8 / (width / 9) * (width / 9);
      place = bytes * 9 + i;
    end else begin
      place = 32'(addr) / 8 * 9 + 32'(addr) % 8 / width * width + i;
    end
  endfunction
  function automatic logic enabled(input logic [13:0] addr, input int unsigned i);
    enabled = WriteUnits == 1 || addr[2'(i / 9)];
  endfunction
  initial begin
    wrong = 0;
    expected = '0;
    for (int unsigned i = 0; i < 1024; i++) bits[i] = '0;
  end
  assign read = ReadUnits == 4 ? {dob, doa} : {18'd0, dob};
  always @(posedge clk) begin
    if (rst) expected <= '0;
    else if (re && cs == Select) begin
      for (int unsigned i = 0; i < ReadW; i++) expected[i] <= bits[place(ReadW, raddr, i) / 18][place(ReadW, raddr, i) % 18];
    end
    if (we && cs == Select) begin
      for (int unsigned i = 0; i < WriteW; i++) begin
        if (enabled(waddr, i)) bits[place(WriteW, waddr, i) / 18][place(WriteW, waddr, i) % 18] <= wdata[i];
      end
    end
  end
  always @(negedge clk) if (read[ReadW-1:0] != expected[ReadW-1:0]) wrong = wrong + 1;
  always @(posedge clk) if (Async && rst && read[ReadW-1:0] != '0) wrong = wrong + 1;
endmodule

// The double-data-rate register under the name that designs use, and under the names that the router uses on the two
// kinds of sides of a part.
module pin_case (
  input  logic       clk,
  input  logic       rst,
  input  logic       first,
  input  logic       second,
  output logic [2:0] q
);
  ODDRX1F u_cell (.SCLK(clk), .RST(rst), .D0(first), .D1(second), .Q(q[0]));
  SIOLOGIC #(.MODE("IDDRX1_ODDRX1"), .LSROMUX("LSRMUX")) u_upper
    (.CLK(clk), .LSR(rst), .TXDATA0(first), .TXDATA1(second), .IOLDO(q[1]));
  IOLOGIC #(.MODE("IDDRX1_ODDRX1"), .LSROMUX("LSRMUX")) u_left
    (.CLK(clk), .LSR(rst), .TXDATA0(first), .TXDATA1(second), .IOLDO(q[2]));
endmodule

module ecp5_cells_check;
  logic        clk = 1'b0, en, rst, is_signed, we, re;
  logic [2:0]  cs;
  logic [17:0] a, b;
  logic [13:0] waddr, raddr;
  logic [35:0] wdata;
  int unsigned wrong_mult [8];
  int unsigned wrong_ram [12];
  int unsigned wrong_pin = 0;
  int unsigned wrong = 0;
  logic [2:0]  pin;
  logic        first, second;

  pin_case u_pin (.clk, .rst, .first(a[0]), .second(b[0]), .q(pin));

  for (genvar r = 0; r < 8; r++) begin : gen_mult
    mult_case #(.InputReg(r[0]), .PipelineReg(r[1]), .OutputReg(r[2]), .Inverted(r[0] ^ r[1]), .Async(r == 4)) u_mult (
      .clk, .en, .rst, .is_signed, .a, .b, .wrong(wrong_mult[r])
    );
  end

  // The write width and the read width of each memory.
  localparam logic [12*2*6-1:0] Widths = {
    6'd36, 6'd36, 6'd36, 6'd18, 6'd18, 6'd18, 6'd18, 6'd9, 6'd9, 6'd18, 6'd9, 6'd9,
    6'd9, 6'd4, 6'd4, 6'd9, 6'd4, 6'd4, 6'd2, 6'd4, 6'd1, 6'd9, 6'd1, 6'd1
  };
  // A 36-bit port uses both sides' data pins; side B then only reads.
  for (genvar r = 0; r < 12; r++) begin : gen_ram
    localparam logic [2:0] Select = 3'(r);
    ram_case #(.WriteW(32'(Widths[r*12+6 +: 6])), .ReadW(32'(Widths[r*12 +: 6])), .Select(Select), .Async(r % 2 == 1)) u_ram (
      .clk, .we, .waddr, .wdata, .re, .rst, .raddr, .cs(cs ^ Select), .wrong(wrong_ram[r])
    );
  end

  initial begin
    {en, rst, is_signed, we, re, cs, a, b, waddr, raddr, wdata} = '0;
    // The whole memory is written once, in every width.
    for (int unsigned n = 0; n < 200000; n++) begin
      we    = n < 16384 || $urandom() % 2 == 0;
      waddr = n < 16384 ? {n[12:0], n[13]} | (n[13] ? 14'h0 : 14'hf) : 14'($urandom());
      wdata = {4'($urandom()), 32'($urandom())};
      re    = n >= 16384 && $urandom() % 4 != 0;
      // Reading a place in the cycle of its write is undefined, so the addresses differ.
      raddr = 14'($urandom()) ^ 14'h2000;
      raddr[13] = ~waddr[13];
      en        = $urandom() % 4 != 0;
      rst       = $urandom() % 64 == 0;
      is_signed = $urandom() % 2 == 0;
      cs        = n < 16384 || $urandom() % 4 != 0 ? 3'd0 : 3'($urandom());
      a         = 18'($urandom());
      b         = 18'($urandom());
      if ($urandom() % 8 == 0) a = {1'b1, 17'd0};
      if ($urandom() % 8 == 0) b = {1'b1, 17'd0};
      {first, second} = {a[0] && !rst, b[0] && !rst};
      #1 clk = 1'b1;
      #1 if (pin != {3{first}}) wrong_pin = wrong_pin + 1;
      clk = 1'b0;
      #1 if (pin != {3{second}}) wrong_pin = wrong_pin + 1;
    end
    if (wrong_pin != 0) $display("pin: %0d", wrong_pin);
    wrong = wrong_pin;
    for (int unsigned i = 0; i < 8; i++) begin
      if (wrong_mult[i] != 0) $display("multiplier %0d: %0d", i, wrong_mult[i]);
      wrong = wrong + wrong_mult[i];
    end
    for (int unsigned i = 0; i < 12; i++) begin
      if (wrong_ram[i] != 0) $display("memory %0d: %0d", i, wrong_ram[i]);
      wrong = wrong + wrong_ram[i];
    end
    $display("%0d wrong", wrong);
    $finish;
  end
endmodule
