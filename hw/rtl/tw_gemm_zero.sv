// Correction for the weights' zero point: the sum of a row's BlockIn inputs times the zero point.
//
// All lanes of a row subtract it, and it is ready in the same cycle as their sums. If products are registered, sums of
// four inputs are registered here, and with more than one stage also the sum of those.
module tw_gemm_zero #(
  parameter int unsigned BlockIn = 16,
  parameter int unsigned MulStages = 0,
  localparam int unsigned Enables = MulStages == 0 ? 1 : MulStages
) (
  input  logic                 clk_i,
  // Enables of the registers before the correction, in the order in which data pass them; if there is none, of the
  // correction
  input  logic [Enables-1:0]   en_i,
  input  logic                 en_sum_i,
  input  logic [BlockIn*8-1:0] inp_i,
  input  logic [7:0]           zero_point_i,
  output logic [31:0]          correction_o
);

  localparam int unsigned Members = BlockIn < 4 ? BlockIn : 4;
  localparam int unsigned Groups = BlockIn / Members;
  localparam int unsigned GroupW = 8 + $clog2(Members);
  localparam int unsigned SumW = 8 + $clog2(BlockIn);

  logic [Groups*GroupW-1:0] groups, groups_q;
  logic [7:0]               zero_point_q;
  always_comb begin
    groups = '0;
    if (en_i[0] && zero_point_i != '0) begin
      for (int unsigned i = 0; i < BlockIn; i++) begin
        groups[i/Members*GroupW +: GroupW] = groups[i/Members*GroupW +: GroupW] + GroupW'($signed(inp_i[i*8 +: 8]));
      end
    end
  end

  if (MulStages == 0) begin : gen_fused
    assign groups_q     = groups;
    assign zero_point_q = zero_point_i;
  end else begin : gen_registered
    always_ff @(posedge clk_i) begin
      if (en_i[0]) begin
        groups_q     <= groups;
        zero_point_q <= zero_point_i;
      end
    end
  end

  logic [SumW-1:0] sum;
  logic [SumW+7:0] product;
  always_comb begin
    sum = '0;
    for (int unsigned g = 0; g < Groups; g++) sum = sum + SumW'($signed(groups_q[g*GroupW +: GroupW]));
  end
  if (MulStages < 2) begin : gen_sum_at_once
    assign product = {{8{sum[SumW-1]}}, sum} * {{SumW{zero_point_q[7]}}, zero_point_q};
  end else begin : gen_sum_kept
    // Both factors of each stage; the lowest bits belong to the first stage.
    localparam int unsigned PairW = SumW + 8;
    logic [(MulStages-1)*PairW-1:0] pairs_q;
    logic [MulStages*PairW-1:0]     pairs;
    logic [PairW-1:0]               last;
    assign pairs = {pairs_q, sum, zero_point_q};
    assign last  = pairs[(MulStages-1)*PairW +: PairW];
    always_ff @(posedge clk_i) begin
      for (int unsigned s = 0; s < MulStages - 1; s++) begin
        if (en_i[s+1]) pairs_q[s*PairW +: PairW] <= pairs[s*PairW +: PairW];
      end
    end
    assign product = {{8{last[PairW-1]}}, last[PairW-1:8]} * {{SumW{last[7]}}, last[7:0]};
  end
  always_ff @(posedge clk_i) begin
    if (MulStages == 0 ? en_i[0] : en_sum_i) correction_o <= 32'($signed(product));
  end

endmodule
