// Compares the models of an ECP5's tables, carries, distributed RAM and registers in a routed netlist with Yosys's
// models of the cells of a synthesized one (LUT4, CCU2C, TRELLIS_DPR16X4, yosys_TRELLIS_FF): random contents, settings
// and inputs.

// Two tables and the multiplexers at their outputs.
module table_pair #(parameter logic [15:0] Init = '0, parameter logic IsUpper = 1'b0) (
  input  logic a, b, c, d, m, f1, fxa, fxb,
  output logic differs
);
  logic f, ofx, other, other_ofx;
  TRELLIS_COMB #(.MODE("LOGIC"), .INITVAL(Init), .IS_Z1(IsUpper)) u_own (
    .A(a), .B(b), .C(c), .D(d), .M(m), .FCI(1'b0), .F1(f1), .FXA(fxa), .FXB(fxb), .WD(1'b0), .WAD0(1'b0), .WAD1(1'b0),
    .WAD2(1'b0), .WAD3(1'b0), .WRE(1'b0), .WCK(1'b0), .DI0(1'b0), .DI1(1'b0), .F(f), .FCO(), .OFX(ofx)
  );
  LUT4 #(.INIT(Init)) u_other (.A(a), .B(b), .C(c), .D(d), .Z(other));
  if (IsUpper) begin : gen_upper
    L6MUX21 u_mux (.D0(fxa), .D1(fxb), .SD(m), .Z(other_ofx));
  end else begin : gen_lower
    PFUMX u_mux (.ALUT(f1), .BLUT(other), .C0(m), .Z(other_ofx));
  end
  assign differs = f != other || ofx != other_ofx;
endmodule

// Two halves of a carry cell.
module carry_pair #(
  parameter logic [15:0] Init0 = '0, parameter logic [15:0] Init1 = '0, parameter Inject0 = "NO", parameter Inject1 = "NO"
) (
  input  logic [3:0] x, y,
  input  logic cin,
  output logic differs
);
  logic s0, s1, middle, cout, other_s0, other_s1, other_cout;
  TRELLIS_COMB #(.MODE("CCU2"), .INITVAL(Init0), .CCU2_INJECT1(Inject0)) u_first (
    .A(x[0]), .B(x[1]), .C(x[2]), .D(x[3]), .M(1'b0), .FCI(cin), .F1(1'b0), .FXA(1'b0), .FXB(1'b0), .WD(1'b0), .WAD0(1'b0),
    .WAD1(1'b0), .WAD2(1'b0), .WAD3(1'b0), .WRE(1'b0), .WCK(1'b0), .DI0(1'b0), .DI1(1'b0), .F(s0), .FCO(middle), .OFX()
  );
  TRELLIS_COMB #(.MODE("CCU2"), .INITVAL(Init1), .CCU2_INJECT1(Inject1)) u_second (
    .A(y[0]), .B(y[1]), .C(y[2]), .D(y[3]), .M(1'b0), .FCI(middle), .F1(1'b0), .FXA(1'b0), .FXB(1'b0), .WD(1'b0), .WAD0(1'b0),
    .WAD1(1'b0), .WAD2(1'b0), .WAD3(1'b0), .WRE(1'b0), .WCK(1'b0), .DI0(1'b0), .DI1(1'b0), .F(s1), .FCO(cout), .OFX()
  );
  CCU2C #(.INIT0(Init0), .INIT1(Init1), .INJECT1_0(Inject0), .INJECT1_1(Inject1)) u_other (
    .CIN(cin), .A0(x[0]), .B0(x[1]), .C0(x[2]), .D0(x[3]), .A1(y[0]), .B1(y[1]), .C1(y[2]), .D1(y[3]), .S0(other_s0),
    .S1(other_s1), .COUT(other_cout)
  );
  assign differs = {s0, s1, cout} != {other_s0, other_s1, other_cout};
endmodule

// Four tables as a four-bit RAM, fed by the write port's wires.
module ram_pair #(parameter WriteMux = "WRE", parameter ClockMux = "WCK") (
  input  logic clk, write,
  input  logic [3:0] data, at, from,
  output logic differs
);
  logic [3:0] wd, wad, own, other;
  TRELLIS_RAMW u_port (
    .D0(at[0]), .B0(at[1]), .C0(at[2]), .A0(at[3]), .C1(data[0]), .A1(data[1]), .D1(data[2]), .B1(data[3]), .WDO0(wd[0]),
    .WDO1(wd[1]), .WDO2(wd[2]), .WDO3(wd[3]), .WADO0(wad[0]), .WADO1(wad[1]), .WADO2(wad[2]), .WADO3(wad[3])
  );
  for (genvar i = 0; i < 4; i++) begin : gen_bit
    TRELLIS_COMB #(.MODE("DPRAM"), .INITVAL(16'h0), .WREMUX(WriteMux), .WCKMUX(ClockMux)) u_own (
      .D(from[0]), .B(from[1]), .C(from[2]), .A(from[3]), .M(1'b0), .FCI(1'b0), .F1(1'b0), .FXA(1'b0), .FXB(1'b0), .WD(wd[i]),
      .WAD0(wad[0]), .WAD1(wad[1]), .WAD2(wad[2]), .WAD3(wad[3]), .WRE(write), .WCK(clk), .DI0(1'b0), .DI1(1'b0), .F(own[i]),
      .FCO(), .OFX()
    );
  end
  TRELLIS_DPR16X4 #(.WREMUX(WriteMux), .WCKMUX(ClockMux)) u_other (
    .DI(data), .WAD(at), .WRE(write), .WCK(clk), .RAD(from), .DO(other)
  );
  assign differs = own != other;
endmodule

// A register whose reset works without the enable, the only kind in Yosys's model.
module register_pair #(
  parameter Enable = "CE", parameter Clock = "CLK", parameter Reset = "LSR", parameter Value = "RESET"
) (
  input  logic clk, lsr, ce, di,
  output logic differs
);
  logic own, other;
  TRELLIS_FF #(.CEMUX(Enable), .CLKMUX(Clock), .LSRMUX(Reset), .REGSET(Value)) u_own (
    .CLK(clk), .LSR(lsr), .CE(ce), .DI(di), .M(!di), .Q(own)
  );
  yosys_TRELLIS_FF #(.CEMUX(Enable), .CLKMUX(Clock), .LSRMUX(Reset), .REGSET(Value)) u_other (
    .CLK(clk), .LSR(lsr), .CE(ce), .DI(di), .M(!di), .Q(other)
  );
  assign differs = own != other;
endmodule

module ecp5_logic_check;
  logic [31:0] in;
  logic        clk = 1'b0;
  logic [3:0]  tables, carries, rams;
  logic [15:0] registers;
  int unsigned wrong = 0;
  for (genvar i = 0; i < 4; i++) begin : gen_pair
    localparam logic [15:0] Init = 16'(32'h1b2d_96e8 >> 4 * i);
    table_pair #(.Init(Init), .IsUpper(i[0])) u_table (
      .a(in[0]), .b(in[1]), .c(in[2]), .d(in[3]), .m(in[4]), .f1(in[5]), .fxa(in[6]), .fxb(in[7]), .differs(tables[i])
    );
    carry_pair #(.Init0(Init), .Init1(~Init), .Inject0(i[0] ? "YES" : "NO"), .Inject1(i[1] ? "YES" : "NO")) u_carry (
      .x(in[3:0]), .y(in[7:4]), .cin(in[8]), .differs(carries[i])
    );
    ram_pair #(.WriteMux(i == 0 ? "WRE" : i == 1 ? "INV" : i == 2 ? "1" : "0"), .ClockMux(i[0] ? "INV" : "WCK")) u_ram (
      .clk, .write(in[9]), .data(in[13:10]), .at(in[17:14]), .from(in[21:18]), .differs(rams[i])
    );
    for (genvar j = 0; j < 4; j++) begin : gen_register
      register_pair #(
        .Enable(i == 0 ? "CE" : i == 1 ? "INV" : i == 2 ? "1" : "0"), .Clock(j[0] ? "INV" : "CLK"),
        .Reset(j[1] ? "INV" : "LSR"), .Value(i[0] ^ j[0] ? "SET" : "RESET")
      ) u_register (.clk, .lsr(in[22]), .ce(in[23]), .di(in[24]), .differs(registers[4 * i + j]));
    end
  end
  initial begin
    for (int unsigned n = 0; n < 20000; n++) begin
      in = $urandom();
      #1 if ({tables, carries, rams, registers} != '0) wrong++;
      clk = !clk;
      #1 if ({tables, carries, rams, registers} != '0) wrong++;
    end
    $display("tables %b, carries %b, RAMs %b, registers %b", tables, carries, rams, registers);
    $display("%0d wrong", wrong);
    $finish;
  end
endmodule
