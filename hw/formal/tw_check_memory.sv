// A memory that answers read bursts, as far as its users count on it: no beat that was not asked for, each burst's last
// beat marked. Which burst's beat comes when is left open, so that any order and any delay is covered.
module tw_check_memory #(
  parameter int unsigned BurstsW = 8,
  parameter int unsigned BeatsW = 16
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               take_i,
  input  logic [7:0]         len_i,
  input  logic               r_valid_i,
  input  logic               r_last_i,
  // Beats and bursts that are still to come.
  output logic [BeatsW-1:0]  owed_o,
  output logic [BurstsW-1:0] bursts_o
);

  logic [BeatsW-1:0]  owed_q;
  logic [BurstsW-1:0] bursts_q;
  assign owed_o   = owed_q;
  assign bursts_o = bursts_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      owed_q   <= '0;
      bursts_q <= '0;
    end else begin
      owed_q   <= owed_q + (take_i ? BeatsW'(len_i) + 1'b1 : '0) - BeatsW'(r_valid_i);
      bursts_q <= bursts_q + BurstsW'(take_i) - BurstsW'(r_valid_i && r_last_i);
    end
  end

  // Each burst under way has a beat to come.
  always @(posedge clk_i) begin
    if (r_valid_i) assume (owed_q != '0 && bursts_q != '0);
    if (r_valid_i && r_last_i) assume (bursts_q == BurstsW'(1) ? owed_q == BeatsW'(1) : owed_q >= BeatsW'(bursts_q));
    if (r_valid_i && !r_last_i) assume (owed_q > BeatsW'(bursts_q));
    if (rst_ni) Owed_I: assert (owed_q >= BeatsW'(bursts_q) && (bursts_q != '0 || owed_q == '0));
  end

endmodule
