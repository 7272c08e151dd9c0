// tw_tokens beside one counter of the model, that of a pair of units which the prover chooses once.
//
// Units start only when their tokens are there, as the core lets them, and after an overflow nothing starts, as the trap has it.
module tw_tokens_formal #(
  parameter int unsigned Width = 3
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] need_i,
  input logic [3:0]  start_i,
  input logic [3:0]  retire_i,
  input logic [15:0] push_i,
  input logic [3:0]  pair_i
);

  logic [3:0] ready, overflow;
  logic [7:0] missing;

  tw_tokens #(.Width(Width)) u_dut (
    .clk_i, .rst_ni, .need_i, .ready_o(ready), .missing_o(missing), .start_i, .retire_i, .push_i, .overflow_o(overflow)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The chosen pair: the unit that gives, and the one that takes.
  logic [3:0] pair_q, pair;
  logic [1:0] from, to;
  assign pair = started_q ? pair_q : pair_i;
  assign from = pair[1:0];
  assign to = pair[3:2];
  always_ff @(posedge clk_i) pair_q <= pair;

  // Its tokens, counted with a bit to spare.
  logic [Width:0] tokens_q;
  logic           give, take, overflowed_q;
  assign give = retire_i[from] && push_i[{from, to}];
  assign take = start_i[to] && need_i[{to, from}];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tokens_q <= '0;
      overflowed_q <= 1'b0;
    end else begin
      tokens_q <= tokens_q + (Width+1)'(give) - (Width+1)'(take);
      if (overflow != '0) overflowed_q <= 1'b1;
    end
  end

  // The only token that the taking unit needs is the chosen pair's.
  logic alone;
  assign alone = need_i[{to, 2'b00} +: 4] == 4'b0001 << from;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    assume ((start_i & ~ready) == '0);
    assume (!overflowed_q || (start_i == '0 && retire_i == '0));
    if (rst_ni) begin
      if (!overflowed_q) begin
        NeverAboveCapacity_A: assert (!tokens_q[Width]);
        if (alone) Ready_A: assert (ready[to] == (tokens_q != '0));
        if (need_i[{to, from}] && tokens_q == '0) NotReady_A: assert (!ready[to]);
        if (need_i[{to, 2'b00} +: 4] == '0) NothingNeeded_A: assert (ready[to]);
        // The lowest unit that keeps the taker waiting is named.
        if (alone && tokens_q == '0) Missing_A: assert (missing[{to, 1'b0} +: 2] == from);
        if (need_i[{to, from}] && tokens_q == '0) MissingLowest_A: assert (missing[{to, 1'b0} +: 2] <= from);
        NeverBelowZero_A: assert (!(take && tokens_q == '0));
        // A push of a full counter is an overflow of the unit that pushes, unless the token is taken in the same cycle.
        if (give && !take && tokens_q == {1'b0, {Width{1'b1}}}) Overflow_A: assert (overflow[from]);
        if (retire_i[from] && push_i[{from, 2'b00} +: 4] == 4'b0001 << to && overflow[from])
          OverflowIsFull_A: assert (!take && tokens_q == {1'b0, {Width{1'b1}}});
        if (!retire_i[from]) NoRetirement_A: assert (!overflow[from]);
      end
      // For the proofs by induction.
      if (!overflowed_q) Counter_I: assert (u_dut.counts[({to, from})*Width +: Width] == tokens_q[Width-1:0]);
      Full_C: cover (tokens_q == {1'b0, {Width{1'b1}}} && give && take && overflow == '0);
      Overflow_C: cover (overflow[from] && from != to);
      Waits_C: cover (!ready[to] && tokens_q != '0 && need_i[{to, from}]);
    end
  end

endmodule
