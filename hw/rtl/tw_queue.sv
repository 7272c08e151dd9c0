`include "tw_assert.svh"

// Instruction queue of a unit, with the head's fields in registers.
//
// Lean configurations keep the waiting instructions word by word in a memory and copy one after the other to the head.
module tw_queue #(
  // Bits of the unit's instructions after their header
  parameter int unsigned BodyW = 128
) (
  input  logic clk_i,
  input  logic rst_ni,

  // An instruction enters; in lean configurations one word of it, with its number and whether it is the last
  input  logic         push_i,
  input  logic [255:0] insn_i,
  input  logic [3:0]   word_i,
  input  logic         last_i,

  // The head starts; in lean configurations its fields stay until hold_i falls
  input  logic pop_i,
  input  logic hold_i,

  // Body, push mask and pop mask of the head, and whether they are valid
  output logic [BodyW+7:0] head_o,
  output logic             valid_o,
  output logic             empty_o,
  output logic             full_o
);

  localparam int unsigned Depth = tw_cfg_pkg::QueueDepth;
  localparam int unsigned CountW = $clog2(Depth + 1);

  if (tw_cfg_pkg::Lean == 0) begin : gen_registers
    logic [CountW-1:0] unused_count;
    logic              unused;
    tw_fifo #(
      .Width(BodyW + 8),
      .Depth(Depth),
      .Head (1'b1)
    ) u_fifo (
      .clk_i,
      .rst_ni,
      .push_i,
      .data_i ({insn_i[16 +: BodyW], insn_i[11:4]}),
      .pop_i,
      .data_o (head_o),
      .empty_o,
      .full_o,
      .count_o(unused_count)
    );
    assign valid_o = !empty_o;
    assign unused  = ^{unused_count, insn_i, word_i, last_i, hold_i};
  end else begin : gen_words
    localparam int unsigned Word = tw_cfg_pkg::InsnWordBits;
    localparam int unsigned Words = (BodyW + 16 + Word - 1) / Word;
    localparam int unsigned SlotW = $clog2(Depth);

    // An instruction is read only after its last word was written.
    (* no_rw_check *) logic [Word-1:0] mem [Depth * 16];
    logic [Word-1:0]       data_q;
    logic [Words*Word-1:0] words_q;
    logic [SlotW-1:0]      wr_q, rd_q;
    logic [CountW-1:0]     count_q;
    logic [3:0]            read_word_q, data_word_q;
    logic                  read, reading_q, data_valid_q, valid_q, push_last;

    // One word is read in each cycle. Its data follow in the next cycle and are at the head in the one after.
    assign read      = reading_q || (!valid_q && !data_valid_q && count_q != '0 && !hold_i);
    assign push_last = push_i && last_i;
    assign head_o    = {words_q[16 +: BodyW], words_q[11:4]};
    assign valid_o   = valid_q;
    assign empty_o   = count_q == '0;
    assign full_o    = count_q == CountW'(Depth);

    always_ff @(posedge clk_i) begin
      if (push_i) mem[{wr_q, word_i}] <= insn_i[Word-1:0];
      data_q <= mem[{rd_q, read_word_q}];
    end
    always_ff @(posedge clk_i) begin
      for (int unsigned k = 0; k < Words; k++) begin
        if (data_valid_q && data_word_q == 4'(k)) words_q[k*Word +: Word] <= data_q;
      end
      data_word_q <= read_word_q;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wr_q         <= '0;
        rd_q         <= '0;
        count_q      <= '0;
        read_word_q  <= '0;
        reading_q    <= 1'b0;
        data_valid_q <= 1'b0;
        valid_q      <= 1'b0;
      end else begin
        if (push_last) wr_q <= wr_q + 1'b1;
        if (pop_i) rd_q <= rd_q + 1'b1;
        count_q      <= count_q + CountW'(push_last) - CountW'(pop_i);
        data_valid_q <= read;
        if (read) read_word_q <= read_word_q == 4'(Words - 1) ? '0 : read_word_q + 1'b1;
        reading_q <= read && read_word_q != 4'(Words - 1);
        if (pop_i) valid_q <= 1'b0;
        else if (data_valid_q && data_word_q == 4'(Words - 1)) valid_q <= 1'b1;
      end
    end

    logic unused;
    assign unused = ^{insn_i, words_q};

    `TW_ASSERT(NoOverflow_A, !(push_last && full_o))
    `TW_ASSERT(NoUnderflow_A, !(pop_i && !valid_q))
    `TW_ASSERT(WordInInstruction_A, !push_i || 32'(word_i) < Words)
  end

endmodule
