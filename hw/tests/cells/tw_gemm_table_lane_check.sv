// Compares tw_gemm_table_lane with tw_gemm_lane: every product at every place with each number of stages, new operands
// at every clock edge, and changing enables.
module tw_gemm_table_lane_check;

  localparam int unsigned BlockIn = 4;

  logic                 clk = 1'b0;
  logic [2:0]           en;
  logic                 en_sum;
  logic [BlockIn*8-1:0] inp, wgt;
  logic [3:0][31:0]     expected, sums;
  int unsigned          wrong = 0;

  for (genvar s = 0; s < 4; s++) begin : gen_stages
    localparam int unsigned Enables = s == 0 ? 1 : s;
    tw_gemm_lane #(.BlockIn(BlockIn), .MulStages(s)) u_lane (
      .clk_i(clk), .en_i(en[Enables-1:0]), .en_sum_i(en_sum), .inp_i(inp), .wgt_i(wgt), .sum_o(expected[s])
    );
    tw_gemm_table_lane #(.BlockIn(BlockIn), .MulStages(s)) u_table_lane (
      .clk_i(clk), .en_i(en[Enables-1:0]), .en_sum_i(en_sum), .inp_i(inp), .wgt_i(wgt), .sum_o(sums[s])
    );
  end

  task automatic clock;
    #1 clk = 1'b1;
    #1 clk = 1'b0;
    #1 if (sums != expected) wrong = wrong + 1;
  endtask

  initial begin
    // Registers are undefined until each has been written.
    {en, en_sum} = '1;
    inp = '0;
    wgt = '0;
    for (int unsigned n = 0; n < 4; n++) begin
      #1 clk = 1'b1;
      #1 clk = 1'b0;
    end
    for (int unsigned at = 0; at < BlockIn; at++) begin
      for (int unsigned pair = 0; pair < 65536; pair++) begin
        inp = '0;
        wgt = $urandom();
        inp[at*8 +: 8] = pair[7:0];
        wgt[at*8 +: 8] = pair[15:8];
        clock();
      end
    end
    for (int unsigned n = 0; n < 200000; n++) begin
      inp = $urandom();
      wgt = $urandom();
      {en, en_sum} = 4'($urandom() | $urandom());
      // Make extreme values meet often.
      for (int unsigned i = 0; i < BlockIn; i++) begin
        if ($urandom() % 2 == 0) inp[i*8 +: 8] = inp[i*8] ? 8'h80 : 8'h7f;
        if ($urandom() % 2 == 0) wgt[i*8 +: 8] = wgt[i*8] ? 8'h80 : 8'h7f;
      end
      clock();
    end
    $display("%0d wrong", wrong);
    $finish;
  end

endmodule
