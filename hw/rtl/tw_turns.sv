// Two requesters take turns: of those that ask one is granted, and where both ask, the one that was not granted last; after
// a reset the first. A request that stands and is not taken stands on.
module tw_turns (
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic [1:0] valid_i,
  input  logic       ready_i,
  output logic [1:0] grant_o,
  // The second's request is the one that stands.
  output logic       second_o
);

  // Whose request stood last, and whether it was not taken.
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

endmodule
