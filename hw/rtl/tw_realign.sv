// Moves the bytes of a row from words of one size to words of another size.
//
// A move takes a cycle. It has at most the bytes of the smaller word and never crosses the end of a destination word.
// Sizes are powers of two up to MaxBytes, given as logarithms.
module tw_realign #(
  parameter int unsigned MaxBytes = 8,
  // Width of a row's length.
  parameter int unsigned BytesW = 16,
  localparam int unsigned Log = $clog2(MaxBytes),
  localparam int unsigned LogW = $clog2(Log + 1)
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A row: its bytes, and where it begins in its first source and destination word
  input  logic              row_valid_i,
  input  logic [BytesW-1:0] row_bytes_i,
  input  logic [Log-1:0]    row_src_i,
  input  logic [Log-1:0]    row_dst_i,
  input  logic [LogW-1:0]   row_src_log_i,
  input  logic [LogW-1:0]   row_dst_log_i,
  output logic              row_ready_o,

  // The two oldest source words
  input  logic [2:0]            src_avail_i,
  input  logic [MaxBytes*8-1:0] src0_i,
  input  logic [MaxBytes*8-1:0] src1_i,
  output logic [1:0]            src_pop_o,

  // The moved bytes, at their place in the destination word
  input  logic                  dst_ready_i,
  output logic                  dst_valid_o,
  output logic [MaxBytes*8-1:0] dst_data_o,
  output logic [MaxBytes-1:0]   dst_bytes_o,
  // The move ends its destination word; it ends its row
  output logic                  dst_full_o,
  output logic                  dst_end_o,
  // Number of bytes, and whether they come from both source words
  output logic [Log:0]          dst_count_o,
  output logic                  src_both_o,
  output logic                  active_o
);

  localparam int unsigned W = Log + 1;
  localparam int unsigned CompW = BytesW > W ? BytesW : W;

  // The current move: the bytes left of the row, its place in its words, and the number of bytes that it moves (n_q).
  // All are computed with the move before, because the end of a row has long paths.
  logic                    active_q, need_two_q, row_end_q, src_end_q, dst_end_q;
  logic [BytesW-1:0]       left_q, left;
  logic [Log-1:0]          src_q, dst_q, src_next_q, dst_next_q, src, dst;
  logic [LogW-1:0]         src_log_q, dst_log_q, src_log, dst_log;
  logic [W-1:0]            n_q, n, src_size, dst_size, unit;
  logic [W:0]              src_past;
  logic [W-1:0]            dst_past;
  logic                    fresh, take_row, step;
  logic [2*MaxBytes*8-1:0] window;
  logic [MaxBytes*8-1:0]   moved;

  ///////////////
  // Next move //
  ///////////////

  // The next move: of this row, or after its end the first one of the next row. Simulators skip it while there is no
  // row.
  assign fresh = !active_q || row_end_q;
  always_comb begin
    left = 'x;
    src = 'x;
    dst = 'x;
    src_log = 'x;
    dst_log = 'x;
    src_size = 'x;
    dst_size = 'x;
    unit = 'x;
    n = 'x;
    src_past = 'x;
    dst_past = 'x;
    if (!fresh || row_valid_i) begin
      left = fresh ? row_bytes_i : BytesW'(CompW'(left_q) - CompW'(n_q));
      src = fresh ? row_src_i : src_next_q;
      dst = fresh ? row_dst_i : dst_next_q;
      src_log = fresh ? row_src_log_i : src_log_q;
      dst_log = fresh ? row_dst_log_i : dst_log_q;
      src_size = W'(1) << src_log;
      dst_size = W'(1) << dst_log;
      unit = src_log < dst_log ? src_size : dst_size;
      n = unit;
      if (n > dst_size - W'(dst)) n = dst_size - W'(dst);
      if ((CompW'(left) >> W) == '0 && n > W'(left)) n = W'(left);
      src_past = (W+1)'(src) + (W+1)'(n);
      dst_past = W'(dst) + n;
    end
  end

  assign take_row = row_valid_i && row_ready_o;
  always_ff @(posedge clk_i) begin
    if (take_row || step) begin
      left_q     <= left;
      src_q      <= src;
      dst_q      <= dst;
      n_q        <= n;
      need_two_q <= src_past > (W+1)'(src_size);
      src_end_q  <= src_past >= (W+1)'(src_size);
      dst_end_q  <= dst_past == dst_size;
      row_end_q  <= CompW'(n) == CompW'(left);
      src_next_q <= Log'(src_past & (W+1)'(src_size - 1'b1));
      dst_next_q <= Log'(dst_past & (dst_size - 1'b1));
    end
    if (take_row) begin
      src_log_q <= row_src_log_i;
      dst_log_q <= row_dst_log_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (take_row) active_q <= 1'b1;
    else if (step && row_end_q) active_q <= 1'b0;
  end

  ///////////////////////
  // Source and result //
  ///////////////////////

  assign dst_valid_o = active_q && src_avail_i >= (need_two_q ? 3'd2 : 3'd1);
  assign step        = dst_valid_o && dst_ready_i;
  assign dst_full_o  = dst_end_q;
  assign dst_end_o   = row_end_q;
  assign dst_count_o = n_q;
  assign src_both_o  = need_two_q;
  assign active_o    = active_q;
  assign row_ready_o = !active_q || (step && row_end_q);

  // A row's end also pops a source word that is only partly used.
  always_comb begin
    src_pop_o = 2'd0;
    if (step) begin
      if (row_end_q) src_pop_o = need_two_q ? 2'd2 : 2'd1;
      else if (src_end_q) src_pop_o = 2'd1;
    end
  end

  always_comb begin
    window = '0;
    moved = '0;
    dst_data_o = '0;
    dst_bytes_o = '0;
    if (active_q) begin
      window = ((2*MaxBytes*8)'(src1_i) << {W'(1) << src_log_q, 3'b000}) | (2*MaxBytes*8)'(src0_i);
      moved = (MaxBytes*8)'(window >> {src_q, 3'b000});
      dst_data_o = moved << {dst_q, 3'b000};
      dst_bytes_o = MaxBytes'((((MaxBytes+1)'(1) << n_q) - 1'b1) << dst_q);
    end
  end

endmodule
