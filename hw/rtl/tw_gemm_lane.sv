// Gemm lane: the registered sum of BlockIn products of signed bytes, one output element of a micro-op.
//
// tw_gemm_table_lane does the same without multipliers.
module tw_gemm_lane #(
  parameter int unsigned BlockIn = 16,
  parameter int unsigned MulStages = 0,
  localparam int unsigned Enables = MulStages == 0 ? 1 : MulStages
) (
  input  logic                 clk_i,
  // Enables of the registers before the sum, in the order in which data pass them; if there is none, of the sum
  input  logic [Enables-1:0]   en_i,
  input  logic                 en_sum_i,
  input  logic [BlockIn*8-1:0] inp_i,
  input  logic [BlockIn*8-1:0] wgt_i,
  output logic [31:0]          sum_o
);

  if (MulStages == 0) begin : gen_fused
    logic [31:0] sum;
    always_comb begin
      sum = '0;
      if (en_i[0]) begin
        for (int unsigned i = 0; i < BlockIn; i++) begin
          sum = sum + 32'($signed(inp_i[i*8 +: 8])) * 32'($signed(wgt_i[i*8 +: 8]));
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (en_i[0]) sum_o <= sum;
    end
    logic unused;
    assign unused = en_sum_i;
  end else begin : gen_registered
    logic [BlockIn*16-1:0] product_q;
    logic [31:0]           sum;
    for (genvar i = 0; i < BlockIn; i++) begin : gen_mul
      tw_mul #(.Stages(MulStages)) u_mul (
        .clk_i,
        .en_i,
        .a_i      (inp_i[i*8 +: 8]),
        .b_i      (wgt_i[i*8 +: 8]),
        .product_o(product_q[i*16 +: 16])
      );
    end
    always_comb begin
      sum = '0;
      for (int unsigned i = 0; i < BlockIn; i++) begin
        sum = sum + {{16{product_q[i*16+15]}}, product_q[i*16 +: 16]};
      end
    end
    always_ff @(posedge clk_i) begin
      if (en_sum_i) sum_o <= sum;
    end
  end

endmodule
