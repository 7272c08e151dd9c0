// tw_turns under any requests; nothing is assumed of who asks and for how long.
module tw_turns_formal (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [1:0] valid_i,
  input logic       ready_i
);

  logic [1:0] grant;
  logic       second;

  tw_turns u_dut (.clk_i, .rst_ni, .valid_i, .ready_i, .grant_o(grant), .second_o(second));

  // Whose request stood last, the second's after a reset, and whether it was not taken; how often the other was granted
  // while one asked without a pause.
  logic       last_q, stood_q;
  logic [1:0] waited0_q, waited1_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_q <= 1'b1;
      stood_q <= 1'b0;
      waited0_q <= '0;
      waited1_q <= '0;
    end else begin
      if (valid_i != '0) begin
        last_q <= second;
        stood_q <= grant == '0;
      end
      if (!valid_i[0] || grant[0]) waited0_q <= '0;
      else if (grant[1] && waited0_q != '1) waited0_q <= waited0_q + 1'b1;
      if (!valid_i[1] || grant[1]) waited1_q <= '0;
      else if (grant[0] && waited1_q != '1) waited1_q <= waited1_q + 1'b1;
    end
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    if (rst_ni) begin
      AtMostOne_A: assert (grant != 2'b11);
      OnlyWhoAsks_A: assert ((grant & ~valid_i) == '0);
      OnlyWhenReady_A: assert (ready_i || grant == '0);
      NoneIdle_A: assert (!(ready_i && valid_i != '0) || grant != '0);
      InTurn_A: assert (!(ready_i && valid_i == 2'b11 && !stood_q) || grant == (last_q ? 2'b01 : 2'b10));
      // What was not taken stands on, as long as it is asked for.
      StandsOn_A: assert (!(stood_q && valid_i[last_q]) || second == last_q);
      // What stands on the bus is the granted one's.
      Standing_A: assert (grant == '0 || second == grant[1]);
      // Who asks waits for one grant of the other's at most.
      NoStarvation0_A: assert (waited0_q <= 2'd1);
      NoStarvation1_A: assert (waited1_q <= 2'd1);
      // For the proofs by induction.
      Last_I: assert (u_dut.last_second_q == last_q && u_dut.stood_q == stood_q);
      Waited_I: assert ((waited0_q == '0 || last_q == !stood_q) && (waited1_q == '0 || last_q == stood_q));
      Turn_C: cover (grant == 2'b10 && valid_i == 2'b11 && waited1_q == 2'd1);
      Again_C: cover (grant == 2'b01 && valid_i == 2'b01 && !last_q);
      Held_C: cover (valid_i == 2'b11 && !ready_i && waited0_q == 2'd1);
    end
  end

endmodule
