// The multiplier cell: the product of two signed bytes, registered. A flow may take another module of this name, made of a part's
// own multipliers with the registers that those have.
module tw_mul (
  input  logic        clk_i,
  input  logic        en_i,
  input  logic [7:0]  a_i,
  input  logic [7:0]  b_i,
  output logic [15:0] product_o
);

  always_ff @(posedge clk_i) begin
    if (en_i) product_o <= 16'($signed(a_i)) * 16'($signed(b_i));
  end

endmodule
