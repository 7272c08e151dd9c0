// Dependency tokens: a counter for each ordered pair of units.
//
// An instruction takes tokens of other units when it starts and gives tokens to other units when it retires. Bit to*4 +
// from of `need_i` is a token that unit `to` needs of unit `from`; bit from*4 + to of `push_i` is one that `from` gives
// to `to`.
module tw_tokens #(
  parameter int unsigned Width = 10
) (
  input  logic clk_i,
  input  logic rst_ni,

  // By unit: the head's pop mask, whether all its tokens are there, the lowest unit whose token is missing, and its
  // start
  input  logic [15:0] need_i,
  output logic [3:0]  ready_o,
  output logic [7:0]  missing_o,
  input  logic [3:0]  start_i,

  // By unit: retirement, its push mask, and whether a token that it gives overflows its counter
  input  logic [3:0]  retire_i,
  input  logic [15:0] push_i,
  output logic [3:0]  overflow_o
);

  // Whether a counter is empty or full, registered with the counter. A unit has no counter for itself.
  logic [15:0] none, full;
  logic        any;
  assign any = (|retire_i) || (|start_i);

  for (genvar to = 0; to < 4; to++) begin : gen_to
    logic [4*Width-1:0] counts_q;
    logic [3:0]         none_q, full_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        counts_q <= '0;
        none_q   <= '1;
        full_q   <= '0;
      end else if (any) begin
        for (int unsigned from = 0; from < 4; from++) begin
          if (from != to) begin
            if ((retire_i[from] && push_i[from*4 + to]) != (start_i[to] && need_i[to*4 + from])) begin
              counts_q[from*Width +: Width] <=
                  counts_q[from*Width +: Width] + (start_i[to] && need_i[to*4 + from] ? '1 : Width'(1));
              none_q[from] <= start_i[to] && need_i[to*4 + from] && counts_q[from*Width +: Width] == Width'(1);
              full_q[from] <= !(start_i[to] && need_i[to*4 + from]) && counts_q[from*Width +: Width] == ~Width'(1);
            end
          end
        end
      end
    end
    assign none[to*4 +: 4] = none_q;
    assign full[to*4 +: 4] = full_q;
  end

  always_comb begin
    ready_o = '1;
    missing_o = '0;
    if (|need_i) begin
      for (int unsigned to = 0; to < 4; to++) begin
        for (int unsigned k = 0; k < 4; k++) begin
          if (need_i[to*4 + 3 - k] && none[to*4 + 3 - k]) begin
            ready_o[to] = 1'b0;
            missing_o[to*2 +: 2] = 2'(3 - k);
          end
        end
      end
    end
  end

  always_comb begin
    overflow_o = '0;
    if (|retire_i) begin
      for (int unsigned to = 0; to < 4; to++) begin
        for (int unsigned from = 0; from < 4; from++) begin
          if (retire_i[from] && push_i[from*4 + to] && full[to*4 + from] && !(start_i[to] && need_i[to*4 + from])) begin
            overflow_o[from] = 1'b1;
          end
        end
      end
    end
  end

endmodule
