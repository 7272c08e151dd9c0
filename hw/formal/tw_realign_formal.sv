// tw_realign beside the row that it was given: each byte of the row comes from its place in the source's words, goes to
// its place in the destination's, once and in order; words leave when they are used up, and a row takes all that it
// began.
//
// The source's words hold anything, and nothing above their size; the byte that is followed is one of the prover's
// choice.
module tw_realign_formal #(
  parameter int unsigned MaxBytes = 8,
  localparam int unsigned Log = $clog2(MaxBytes),
  localparam int unsigned LogW = $clog2(Log + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  row_valid_i,
  input logic [15:0]           row_bytes_i,
  input logic [Log-1:0]        row_src_i,
  input logic [Log-1:0]        row_dst_i,
  input logic [LogW-1:0]       row_src_log_i,
  input logic [LogW-1:0]       row_dst_log_i,
  input logic [2:0]            src_avail_i,
  input logic [MaxBytes*8-1:0] src0_i,
  input logic [MaxBytes*8-1:0] src1_i,
  input logic                  dst_ready_i,
  input logic [15:0]           byte_i
);

  logic                  row_ready, dst_valid, dst_full, dst_end, src_both, active;
  logic [1:0]            src_pop;
  logic [MaxBytes*8-1:0] dst_data;
  logic [MaxBytes-1:0]   dst_bytes;
  logic [Log:0]          dst_count;

  tw_realign #(.MaxBytes(MaxBytes)) u_dut (
    .clk_i, .rst_ni, .row_valid_i, .row_bytes_i, .row_src_i, .row_dst_i, .row_src_log_i, .row_dst_log_i,
    .row_ready_o(row_ready), .src_avail_i, .src0_i, .src1_i, .src_pop_o(src_pop), .dst_ready_i, .dst_valid_o(dst_valid),
    .dst_data_o(dst_data), .dst_bytes_o(dst_bytes), .dst_full_o(dst_full), .dst_end_o(dst_end), .dst_count_o(dst_count),
    .src_both_o(src_both), .active_o(active)
  );

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  // The row, the bytes of it that are moved and the source's words that it has used up.
  logic        busy_q, take_row, move, ends;
  logic [17:0] bytes_q, src_q, dst_q, done_q, words_q, src_size, dst_size, past, src_past, dst_past, unit, room;
  logic [LogW-1:0] src_log_q, dst_log_q;
  assign take_row = row_valid_i && row_ready;
  assign move     = dst_valid && dst_ready_i;
  assign src_size = 18'd1 << src_log_q;
  assign dst_size = 18'd1 << dst_log_q;
  assign past     = done_q + 18'(dst_count);
  assign src_past = src_q + past;
  assign dst_past = dst_q + past;
  assign ends     = past == bytes_q;
  assign unit     = src_size < dst_size ? src_size : dst_size;
  assign room     = dst_size - ((dst_q + done_q) & (dst_size - 18'd1));

  always_ff @(posedge clk_i) begin
    if (!rst_ni) busy_q <= 1'b0;
    else if (take_row) busy_q <= 1'b1;
    else if (move && ends) busy_q <= 1'b0;
    if (take_row) begin
      bytes_q   <= 18'(row_bytes_i);
      src_q     <= 18'(row_src_i);
      dst_q     <= 18'(row_dst_i);
      src_log_q <= row_src_log_i;
      dst_log_q <= row_dst_log_i;
      done_q    <= '0;
      words_q   <= '0;
    end else if (move) begin
      done_q  <= past;
      words_q <= words_q + 18'(src_pop);
    end
  end

  // The byte that is followed: its word and place in the source, its place in the destination, whether it is moved now.
  logic [17:0] followed, src_word, src_place, dst_place;
  logic        moved_now;
  logic [7:0]  followed_data;
  assign followed  = 18'(byte_i);
  assign src_word  = (src_q + followed) >> src_log_q;
  assign src_place = (src_q + followed) & (src_size - 18'd1);
  assign dst_place = (dst_q + followed) & (dst_size - 18'd1);
  assign moved_now = move && followed >= done_q && followed < past;
  assign followed_data = src_word == words_q ? src0_i[src_place[Log-1:0]*8 +: 8] : src1_i[src_place[Log-1:0]*8 +: 8];

  logic [MaxBytes-1:0] mask;
  always_comb begin
    for (int unsigned b = 0; b < MaxBytes; b++) mask[b] = 18'(b) >= dst_size - room && 18'(b) < dst_size - room + 18'(dst_count);
  end

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    if (row_valid_i) begin
      assume (row_bytes_i != '0 && 32'(row_src_log_i) <= Log && 32'(row_dst_log_i) <= Log);
      assume ((32'(row_src_i) >> row_src_log_i) == '0 && (32'(row_dst_i) >> row_dst_log_i) == '0);
    end
    assume (src_avail_i <= 3'd4);
    // A source word that is smaller than the largest has nothing above it.
    if (busy_q) assume ((src0_i >> {src_size, 3'b000}) == '0);
    if (rst_ni) begin
      Active_A: assert (active == busy_q);
      Ready_A: assert (row_ready == (!busy_q || (move && ends)));
      if (!move) NothingTaken_A: assert (src_pop == 2'd0);
      if (busy_q) begin
        // Moves are as long as they may be: the smaller word, the destination word's rest, the row's rest.
        Count_A: assert (dst_count != '0 && 18'(dst_count) == (bytes_q - done_q < unit && bytes_q - done_q < room ? bytes_q - done_q : unit < room ? unit : room));
        End_A: assert (dst_end == ends);
        Full_A: assert (dst_full == ((dst_past & (dst_size - 18'd1)) == '0));
        Both_A: assert (src_both == (((src_past - 18'd1) >> src_log_q) != words_q));
        Valid_A: assert (dst_valid == (src_avail_i >= (src_both ? 3'd2 : 3'd1)));
        // Bytes of the destination word that take part, and their data.
        Mask_A: assert (dst_bytes == mask);
        if (moved_now) begin
          Word_A: assert (src_word == words_q || (src_word == words_q + 18'd1 && src_both));
          Data_A: assert (dst_data[dst_place[Log-1:0]*8 +: 8] == followed_data);
        end
        // Words are taken when their last byte is moved, all of them at the row's end.
        if (move) Taken_A: assert (words_q + 18'(src_pop) == (ends ? ((src_past - 18'd1) >> src_log_q) + 18'd1 : src_past >> src_log_q));
        // For the proofs by induction.
        State_I: assert (u_dut.src_log_q == src_log_q && u_dut.dst_log_q == dst_log_q && done_q < bytes_q && bytes_q <= 18'd65535
                         && 18'(u_dut.left_q) == bytes_q - done_q && 18'(u_dut.src_q) == ((src_q + done_q) & (src_size - 18'd1))
                         && 18'(u_dut.dst_q) == ((dst_q + done_q) & (dst_size - 18'd1)) && words_q == (src_q + done_q) >> src_log_q
                         && 32'(src_log_q) <= Log && 32'(dst_log_q) <= Log && src_q < src_size && dst_q < dst_size);
        Ahead_I: assert (18'(u_dut.src_next_q) == (src_past & (src_size - 18'd1)) && 18'(u_dut.dst_next_q) == (dst_past & (dst_size - 18'd1))
                         && u_dut.src_end_q == (src_past >> src_log_q != words_q));
      end
      Both_C: cover (move && src_both && !ends && done_q != '0 && src_log_q < dst_log_q);
      Cut_C: cover (move && dst_full && !ends && src_log_q > dst_log_q && src_pop == 2'd1);
      Back_C: cover (move && ends && take_row && src_pop == 2'd2);
    end
  end

endmodule
