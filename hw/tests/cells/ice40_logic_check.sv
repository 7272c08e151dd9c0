// Compares the model of an iCE40's logic cell with Yosys's (yosys_ICESTORM_LC) for settings of its table, carry and
// register, with random inputs.
module cell_pair #(
  parameter logic [15:0] Init = '0, parameter logic [6:0] Set = '0
) (
  input  logic clk,
  input  logic [6:0] in,
  output logic differs
);
  logic lo, o, cout, other_lo, other_o, other_cout;
  ICESTORM_LC #(
    .LUT_INIT(Init), .NEG_CLK(Set[0]), .CARRY_ENABLE(Set[1]), .DFF_ENABLE(Set[2]), .SET_NORESET(Set[3]), .ASYNC_SR(Set[4]),
    .CIN_CONST(Set[5]), .CIN_SET(Set[6])
  ) u_own (
    .I0(in[0]), .I1(in[1]), .I2(in[2]), .I3(in[3]), .CIN(in[4]), .CLK(clk), .CEN(in[5]), .SR(in[6]), .LO(lo), .O(o), .COUT(cout)
  );
  yosys_ICESTORM_LC #(
    .LUT_INIT(Init), .NEG_CLK(Set[0]), .CARRY_ENABLE(Set[1]), .DFF_ENABLE(Set[2]), .SET_NORESET(Set[3]), .ASYNC_SR(Set[4]),
    .CIN_CONST(Set[5]), .CIN_SET(Set[6])
  ) u_other (
    .I0(in[0]), .I1(in[1]), .I2(in[2]), .I3(in[3]), .CIN(in[4]), .CLK(clk), .CEN(in[5]), .SR(in[6]), .LO(other_lo), .O(other_o),
    .COUT(other_cout)
  );
  // Without a carry, the carry output is undefined.
  assign differs = lo != other_lo || o != other_o || (Set[1] && cout != other_cout);
endmodule

module ice40_logic_check;
  logic         clk = 1'b0;
  logic [6:0]   in;
  logic [127:0] differs;
  int unsigned  wrong = 0;
  for (genvar s = 0; s < 128; s++) begin : gen_pair
    cell_pair #(.Init(16'(32'h1b2d_96e8 >> s % 16)), .Set(7'(s))) u_pair (.clk, .in, .differs(differs[s]));
  end
  initial begin
    for (int unsigned n = 0; n < 20000; n++) begin
      in = 7'($urandom());
      #1 if (differs != '0) wrong++;
      clk = !clk;
      #1 if (differs != '0) wrong++;
    end
    if (wrong != 0) $display("settings %h", differs);
    $display("%0d wrong", wrong);
    $finish;
  end
endmodule
