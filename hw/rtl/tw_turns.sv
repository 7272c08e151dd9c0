`include "tw_assert.svh"

// Arbiter of two requesters in turn: if both ask, the one that was not granted last wins; after a reset, the first.
//
// A request that is selected and not taken stays selected.
module tw_turns (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic [1:0] valid_i,
  input  logic       ready_i,
  output logic [1:0] grant_o,
  // The second requester is selected
  output logic       second_o
);

  // Who was selected last, and whether the request was not taken
  logic last_second_q, stood_q;
  assign second_o = valid_i[1] && (!valid_i[0] || last_second_q == stood_q);
  assign grant_o[0] = valid_i[0] && ready_i && !second_o;
  assign grant_o[1] = ready_i && second_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      last_second_q <= 1'b1;
      stood_q       <= 1'b0;
    end else if (|valid_i) begin
      last_second_q <= second_o;
      stood_q       <= !ready_i;
    end
  end

  `TW_ASSERT(OneGrant_A, !(grant_o[0] && grant_o[1]))
  `TW_ASSERT(GrantIsAsked_A, (grant_o & ~valid_i) == '0)

endmodule
