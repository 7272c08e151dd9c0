// The weights' zero point, off all lanes: the sum of a row's BlockIn inputs times the zero point, ready with the lanes' sums.
module tw_gemm_zero #(
  parameter int unsigned BlockIn = 16,
  parameter int unsigned MulStages = 0
) (
  input  logic                 clk_i,
  input  logic                 en_i,
  input  logic                 en_sum_i,
  input  logic [BlockIn*8-1:0] inp_i,
  input  logic [7:0]           zero_point_i,
  output logic [31:0]          correction_o
);

  logic [31:0] sum;
  always_comb begin
    sum = '0;
    if (en_i && zero_point_i != '0) begin
      for (int unsigned i = 0; i < BlockIn; i++) sum = sum + {{24{inp_i[i*8+7]}}, inp_i[i*8 +: 8]};
    end
  end

  if (MulStages == 0) begin : gen_fused
    always_ff @(posedge clk_i) begin
      if (en_i) correction_o <= sum * {{24{zero_point_i[7]}}, zero_point_i};
    end
    logic unused;
    assign unused = en_sum_i;
  end else begin : gen_registered
    logic [31:0] sum_q;
    logic [7:0]  zero_point_q;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        sum_q        <= sum;
        zero_point_q <= zero_point_i;
      end
      if (en_sum_i) correction_o <= sum_q * {{24{zero_point_q[7]}}, zero_point_q};
    end
  end

endmodule
