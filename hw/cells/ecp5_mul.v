// tw_mul for an ECP5, up to the mapping to tables: a cell with the times of the multiplier block that it becomes (ecp5_mul.map), ps.
(* blackbox *)
module tw_mul (
  input         clk_i,
  input         en_i,
  input  [7:0]  a_i,
  input  [7:0]  b_i,
  output [15:0] product_o
);
  specify
    $setup(a_i, posedge clk_i, 2630);
    $setup(b_i, posedge clk_i, 2630);
    $setup(en_i, posedge clk_i, 300);
    (posedge clk_i => (product_o : 16'd0)) = 580;
  endspecify
endmodule
