// tw_gemm_table_lane beside the sum that it stands for: every product at every place, the others zero, then random sums.
module tw_gemm_table_lane_check;

  localparam int unsigned BlockIn = 4;

  logic                 clk = 1'b0;
  logic [BlockIn*8-1:0] inp, wgt;
  logic [3:0][31:0]     sums;
  logic [31:0]          expected;
  int unsigned          wrong = 0;

  for (genvar s = 0; s < 4; s++) begin : gen_stages
    tw_gemm_table_lane #(.BlockIn(BlockIn), .MulStages(s)) u_lane (
      .clk_i(clk), .en_i('1), .en_sum_i(1'b1), .inp_i(inp), .wgt_i(wgt), .sum_o(sums[s])
    );
  end

  task automatic check;
    expected = '0;
    for (int unsigned i = 0; i < BlockIn; i++) begin
      expected = expected + 32'($signed(inp[i*8 +: 8])) * 32'($signed(wgt[i*8 +: 8]));
    end
    for (int unsigned edges = 0; edges < 4; edges++) begin
      #1 clk = 1'b1;
      #1 clk = 1'b0;
    end
    #1 if (sums != {4{expected}}) wrong = wrong + 1;
  endtask

  initial begin
    for (int unsigned at = 0; at < BlockIn; at++) begin
      for (int unsigned pair = 0; pair < 65536; pair++) begin
        inp = '0;
        wgt = $urandom();
        inp[at*8 +: 8] = pair[7:0];
        wgt[at*8 +: 8] = pair[15:8];
        check();
      end
    end
    for (int unsigned n = 0; n < 100000; n++) begin
      inp = $urandom();
      wgt = $urandom();
      // Extreme values meet often.
      for (int unsigned i = 0; i < BlockIn; i++) begin
        if ($urandom() % 2 == 0) inp[i*8 +: 8] = inp[i*8] ? 8'h80 : 8'h7f;
        if ($urandom() % 2 == 0) wgt[i*8 +: 8] = wgt[i*8] ? 8'h80 : 8'h7f;
      end
      check();
    end
    $display("%0d wrong", wrong);
    $finish;
  end

endmodule
