// The instructions that wait for a unit, and the one at their head: in registers, or where the configuration is lean word
// by word in a memory, from which they are brought to the head one after the other.
module tw_queue #(
  // Bits of the unit's instructions behind their header.
  parameter int unsigned BodyW = 128
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  // An instruction enters, or where lean its lowest word does: which one, and whether it is the last.
  input  logic             push_i,
  input  logic [255:0]     insn_i,
  input  logic [3:0]       word_i,
  input  logic             last_i,
  // The head leaves; where lean its fields stay as they are until nobody holds them.
  input  logic             pop_i,
  input  logic             hold_i,
  // Body, push mask and pop mask of the head, and whether they stand there.
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
    tw_fifo #(.Width(BodyW + 8), .Depth(Depth), .Head(1'b1)) u_fifo (
      .clk_i, .rst_ni, .push_i, .data_i({insn_i[16 +: BodyW], insn_i[11:4]}), .pop_i, .data_o(head_o), .empty_o, .full_o,
      .count_o(unused_count)
    );
    assign valid_o = !empty_o;
    assign unused  = ^{unused_count, insn_i, word_i, last_i, hold_i};
  end else begin : gen_words
    localparam int unsigned Word = tw_cfg_pkg::InsnWordBits;
    localparam int unsigned Words = (BodyW + 16 + Word - 1) / Word;
    localparam int unsigned SlotW = $clog2(Depth);

    // No word is read before all of its instruction are there.
    (* no_rw_check *) logic [Word-1:0] mem [Depth * 16];
    logic [Word-1:0]       data_q;
    logic [Words*Word-1:0] words_q;
    logic [SlotW-1:0]      wr_q, rd_q;
    logic [CountW-1:0]     count_q;
    logic [3:0]            ask_q, come_q;
    logic                  asks, asking_q, come_valid_q, valid_q, enters;

    // Words are asked for one after the other, come a cycle later and stand at the head another one later.
    assign asks    = asking_q || (!valid_q && !come_valid_q && count_q != '0 && !hold_i);
    assign enters  = push_i && last_i;
    assign head_o  = {words_q[16 +: BodyW], words_q[11:4]};
    assign valid_o = valid_q;
    assign empty_o = count_q == '0;
    assign full_o  = count_q == CountW'(Depth);

    always_ff @(posedge clk_i) begin
      if (push_i) mem[{wr_q, word_i}] <= insn_i[Word-1:0];
      data_q <= mem[{rd_q, ask_q}];
    end
    always_ff @(posedge clk_i) begin
      for (int unsigned k = 0; k < Words; k++) begin
        if (come_valid_q && come_q == 4'(k)) words_q[k*Word +: Word] <= data_q;
      end
      come_q <= ask_q;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        wr_q         <= '0;
        rd_q         <= '0;
        count_q      <= '0;
        ask_q        <= '0;
        asking_q     <= 1'b0;
        come_valid_q <= 1'b0;
        valid_q      <= 1'b0;
      end else begin
        if (enters) wr_q <= wr_q + 1'b1;
        if (pop_i) rd_q <= rd_q + 1'b1;
        count_q      <= count_q + CountW'(enters) - CountW'(pop_i);
        come_valid_q <= asks;
        if (asks) ask_q <= ask_q == 4'(Words - 1) ? '0 : ask_q + 1'b1;
        asking_q     <= asks && ask_q != 4'(Words - 1);
        if (pop_i) valid_q <= 1'b0;
        else if (come_valid_q && come_q == 4'(Words - 1)) valid_q <= 1'b1;
      end
    end

    logic unused;
    assign unused = ^{insn_i, words_q};
  end

endmodule
