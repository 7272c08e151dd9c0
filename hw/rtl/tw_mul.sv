// Multiplier cell: the registered product of two signed bytes.
//
//   Stages 1   a register of the product
//   Stages 2   also registers of the operands
//   Stages 3   also a second register of the product
//
// A flow can replace this module by one of the same name that uses a part's own multipliers and their registers.
module tw_mul #(
  parameter int unsigned Stages = 1
) (
  input  logic              clk_i,
  // Enables of the registers, in the order in which data pass them
  input  logic [Stages-1:0] en_i,
  input  logic [7:0]        a_i,
  input  logic [7:0]        b_i,
  output logic [15:0]       product_o
);

  // Registers, or wires where there is no stage for them
  logic [7:0]  a_q, b_q;
  logic [15:0] product, product_q;
  assign product = 16'($signed(a_q)) * 16'($signed(b_q));

  if (Stages < 2) begin : gen_no_operands
    assign {a_q, b_q} = {a_i, b_i};
  end else begin : gen_operands
    always_ff @(posedge clk_i) begin
      if (en_i[0]) {a_q, b_q} <= {a_i, b_i};
    end
  end
  if (Stages < 3) begin : gen_no_middle
    assign product_q = product;
  end else begin : gen_middle
    always_ff @(posedge clk_i) begin
      if (en_i[1]) product_q <= product;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i[Stages-1]) product_o <= product_q;
  end

endmodule
