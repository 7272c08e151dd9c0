// tw_tokens beside sixteen counters, one for each ordered pair of units. What is claimed of a unit is claimed of one
// that the prover chooses anew in each cycle.
//
// Units start only when their tokens are there, as the core lets them, and after an overflow nothing starts, as the
// trap has it.
module tw_tokens_formal #(
  parameter int unsigned Width = 3
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [15:0] need_i,
  input logic [3:0]  start_i,
  input logic [3:0]  retire_i,
  input logic [15:0] push_i,
  input logic [1:0]  unit_i
);

  localparam int unsigned CountW = Width + 1;
  localparam logic [Width:0] Full = {1'b0, {Width{1'b1}}};

  logic [3:0] ready, overflow;
  logic [7:0] missing;

  tw_tokens #(.Width(Width)) u_dut (
    .clk_i, .rst_ni, .need_i, .ready_o(ready), .missing_o(missing), .start_i, .retire_i, .push_i, .overflow_o(overflow)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // By pair, the unit that takes first: the tokens that are there, with a bit to spare; whether one comes and one goes;
  // whether there is none, or no place for one more.
  logic [16*CountW-1:0] tokens_q;
  logic [15:0]          give, take, none, full;
  for (genvar to = 0; to < 4; to++) begin : gen_to
    for (genvar from = 0; from < 4; from++) begin : gen_from
      localparam int unsigned Pair = to * 4 + from;
      assign give[Pair] = retire_i[from] && push_i[from*4 + to];
      assign take[Pair] = start_i[to] && need_i[Pair];
      assign none[Pair] = tokens_q[Pair*CountW +: CountW] == '0;
      assign full[Pair] = tokens_q[Pair*CountW +: CountW] == Full;
      always_ff @(posedge clk_i) begin
        if (!rst_ni) tokens_q[Pair*CountW +: CountW] <= '0;
        else tokens_q[Pair*CountW +: CountW] <= tokens_q[Pair*CountW +: CountW] + CountW'(give[Pair]) - CountW'(take[Pair]);
      end
    end
  end

  logic overflowed_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) overflowed_q <= 1'b0;
    else if (overflow != '0) overflowed_q <= 1'b1;
  end

  // The chosen unit as one that takes: the units whose tokens it lacks, and the one that is named. As one that gives:
  // the units whose counters have no place.
  logic [3:0] lacks, below, spills;
  logic [1:0] named;
  assign lacks = need_i[{unit_i, 2'b00} +: 4] & none[{unit_i, 2'b00} +: 4];
  assign named = missing[{unit_i, 1'b0} +: 2];
  assign below = (4'd1 << named) - 4'd1;
  always_comb begin
    for (int unsigned to = 0; to < 4; to++) spills[to] = give[{2'(to), unit_i}] && !take[{2'(to), unit_i}] && full[{2'(to), unit_i}];
  end

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    assume ((start_i & ~ready) == '0);
    // The decoder refuses tokens of a unit for itself.
    assume ((need_i & 16'h8421) == '0 && (push_i & 16'h8421) == '0);
    assume (!overflowed_q || (start_i == '0 && retire_i == '0));
    if (rst_ni) begin
      if (!overflowed_q) begin
        // Ready when all that is needed is there; else the lowest unit that keeps it waiting is named.
        Ready_A: assert (ready[unit_i] == (lacks == '0));
        if (lacks != '0) MissingLowest_A: assert (lacks[named] && (lacks & below) == '0);
        NeverBelowZero_A: assert ((take & none) == '0);
        // A push of a full counter is an overflow of the unit that pushes, unless the token is taken in the same cycle.
        Overflow_A: assert (overflow[unit_i] == (spills != '0));
      end
      Several_C: cover (lacks == 4'b0110 && need_i[{unit_i, 2'b00} +: 4] == 4'b0111);
      Starts_C: cover (start_i[unit_i] && need_i[{unit_i, 2'b00} +: 4] == 4'b1101);
      Full_C: cover (full[1] && give[1] && take[1] && overflow == '0);
      Overflow_C: cover (overflow[unit_i] && spills == 4'b1000);
    end
  end
  for (genvar p = 0; p < 16; p++) begin : gen_pair
    always @(posedge clk_i) begin
      if (rst_ni && !overflowed_q) begin
        NeverAboveCapacity_A: assert (!tokens_q[p*CountW + Width]);
        // For the proofs by induction.
        Counter_I: assert (u_dut.gen_to[p/4].counts_q[p%4*Width +: Width] == tokens_q[p*CountW +: Width]);
        Ends_I: assert (u_dut.none[p] == none[p] && u_dut.full[p] == full[p]);
      end
    end
  end

endmodule
