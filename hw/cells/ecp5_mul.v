// tw_mul for an ECP5, up to the mapping to tables: a cell with the times of the multiplier block that it becomes (ecp5_mul.map), ps: operands
// come before the multiplication, or before registers of their own. The RTL's reader takes no parameters among times, and so none of them.
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
