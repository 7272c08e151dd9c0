// tw_mul for an ECP5 until technology mapping: a cell with the delays of the multiplier block that it becomes
// (ecp5_mul.map), in ps. Operands enter the multiplication, or registers in front of it. slang, which reads the RTL,
// accepts no parameters in delays, so it is not shown the delays (TW_TIMES).
(* blackbox *)
module tw_mul #(
  parameter Stages = 1
) (
  input               clk_i,
  input  [Stages-1:0] en_i,
  input  [7:0]        a_i,
  input  [7:0]        b_i,
  output [15:0]       product_o
);
`ifdef TW_TIMES
  specify
    $setup(a_i, posedge clk_i, Stages > 1 ? 40 : 2630);
    $setup(b_i, posedge clk_i, Stages > 1 ? 40 : 2630);
    $setup(en_i, posedge clk_i, 300);
    (posedge clk_i => (product_o : 16'd0)) = 580;
  endspecify
`endif
endmodule
