// Moves the bytes of one row from words of one size to words of another: at most the smaller word a cycle, never across
// the end of a destination word. Sizes are powers of two up to MaxBytes, given as logarithms.
module tw_realign #(
  parameter int unsigned MaxBytes = 8,
  // Width of a row's length.
  parameter int unsigned BytesW = 16,
  localparam int unsigned Log = $clog2(MaxBytes),
  localparam int unsigned LogW = $clog2(Log + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  // A row: bytes, and where it begins in its first source and destination word.
  input  logic                  row_valid_i,
  input  logic [BytesW-1:0]     row_bytes_i,
  input  logic [Log-1:0]        row_src_i,
  input  logic [Log-1:0]        row_dst_i,
  input  logic [LogW-1:0]       row_src_log_i,
  input  logic [LogW-1:0]       row_dst_log_i,
  output logic                  row_ready_o,
  // The two oldest source words.
  input  logic [2:0]            src_avail_i,
  input  logic [MaxBytes*8-1:0] src0_i,
  input  logic [MaxBytes*8-1:0] src1_i,
  output logic [1:0]            src_pop_o,
  // Bytes for the destination word, in place.
  input  logic                  dst_ready_i,
  output logic                  dst_valid_o,
  output logic [MaxBytes*8-1:0] dst_data_o,
  output logic [MaxBytes-1:0]   dst_bytes_o,
  // The destination word is finished; the row is.
  output logic                  dst_full_o,
  output logic                  dst_end_o,
  // How many bytes, and whether they come from both words.
  output logic [Log:0]          dst_count_o,
  output logic                  src_both_o,
  output logic                  active_o
);

  localparam int unsigned W = Log + 1;
  localparam int unsigned CompW = BytesW > W ? BytesW : W;

  logic            active_q;
  logic [BytesW-1:0] left_q;
  logic [Log-1:0]  src_q, dst_q;
  logic [LogW-1:0] src_log_q, dst_log_q;
  logic [W-1:0]    src_size, dst_size, unit, n;
  logic [W:0]      src_past;
  logic [W-1:0]    dst_past;
  logic            need_two, step, row_end;
  logic [2*MaxBytes*8-1:0] window;
  logic [MaxBytes*8-1:0]   moved;

  // Nothing is computed while there is no row.
  always_comb begin
    src_size = '0;
    dst_size = '0;
    unit = '0;
    n = '0;
    src_past = '0;
    dst_past = '0;
    need_two = 1'b0;
    row_end = 1'b0;
    if (active_q) begin
      src_size = W'(1) << src_log_q;
      dst_size = W'(1) << dst_log_q;
      unit = src_log_q < dst_log_q ? src_size : dst_size;
      n = unit;
      if (n > dst_size - W'(dst_q)) n = dst_size - W'(dst_q);
      if ((CompW'(left_q) >> W) == '0 && n > W'(left_q)) n = W'(left_q);
      src_past = (W+1)'(src_q) + (W+1)'(n);
      dst_past = W'(dst_q) + n;
      need_two = src_past > (W+1)'(src_size);
      row_end = CompW'(n) == CompW'(left_q);
    end
  end
  assign dst_valid_o = active_q && src_avail_i >= (need_two ? 3'd2 : 3'd1);
  assign step     = dst_valid_o && dst_ready_i;
  assign dst_full_o = dst_past == dst_size;
  assign dst_end_o  = row_end;
  assign dst_count_o = n;
  assign src_both_o = need_two;
  assign active_o   = active_q;
  assign row_ready_o = !active_q || (step && row_end);

  // At a row's end the word that is only partly used goes too.
  always_comb begin
    src_pop_o = 2'd0;
    if (step) begin
      if (row_end) src_pop_o = need_two ? 2'd2 : 2'd1;
      else if (src_past >= (W+1)'(src_size)) src_pop_o = 2'd1;
    end
  end

  always_comb begin
    window = '0;
    moved = '0;
    dst_data_o = '0;
    dst_bytes_o = '0;
    if (active_q) begin
      window = ((2*MaxBytes*8)'(src1_i) << {src_size, 3'b000}) | (2*MaxBytes*8)'(src0_i);
      moved = (MaxBytes*8)'(window >> {src_q, 3'b000});
      dst_data_o = moved << {dst_q, 3'b000};
      dst_bytes_o = MaxBytes'((((MaxBytes+1)'(1) << n) - 1'b1) << dst_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (row_valid_i && row_ready_o) active_q <= 1'b1;
    else if (step && row_end) active_q <= 1'b0;
  end

  always_ff @(posedge clk_i) begin
    if (row_valid_i && row_ready_o) begin
      left_q    <= row_bytes_i;
      src_q     <= row_src_i;
      dst_q     <= row_dst_i;
      src_log_q <= row_src_log_i;
      dst_log_q <= row_dst_log_i;
    end else if (step) begin
      left_q <= BytesW'(CompW'(left_q) - CompW'(n));
      src_q  <= Log'(src_past & (W+1)'(src_size - 1'b1));
      dst_q  <= Log'(dst_past & (dst_size - 1'b1));
    end
  end

endmodule
