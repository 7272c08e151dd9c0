`include "tw_assert.svh"

// Fetch unit: reads the instruction stream and hands each instruction to its unit's queue, in order.
//
//   requests      bursts of the stream, as far ahead as the buffer has places
//   tw_words      buffers the beats
//   assembly      cuts beats into instructions, or joins beats to one
//   tw_decode     the unit, and whether the instruction is legal
//
// Lean configurations hand out an instruction word by word.
module tw_fetch (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // A command: its stream
  input  logic                              start_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] stream_addr_i,
  input  logic [tw_cfg_pkg::CountW-1:0]     stream_insns_i,

  // Read requests and data
  output logic                              ar_valid_o,
  input  logic                              ar_grant_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]                        ar_len_o,
  input  logic                              r_valid_i,
  input  logic [tw_cfg_pkg::BusBits-1:0]    r_data_i,
  input  logic                              r_error_i,
  input  logic                              r_last_i,

  // Instruction queues, one bit for each
  output logic [3:0]   push_o,
  // The instruction; in lean configurations what is left of it, and its lowest word enters the queue
  output logic [255:0] insn_o,
  output logic [3:0]   word_o,
  output logic         last_o,
  input  logic [3:0]   full_i,

  // State
  output logic       done_o,
  output logic       held_o,
  output logic       quiet_o,
  output logic [3:0] state_o,

  // Traps
  output logic                          trap_o,
  output logic [3:0]                    trap_cause_o,
  // Number of instructions handed out. The trapping instruction is the next one, or the one after it (trap_behind_o).
  output logic [tw_cfg_pkg::CountW-1:0] ordinal_o,
  output logic                          trap_behind_o
);

  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned CountW = tw_cfg_pkg::CountW;
  // Beats of an instruction, and instructions of a beat
  localparam int unsigned BeatsOfInsn = BusBytes >= 32 ? 1 : 32 / BusBytes;
  localparam int unsigned InsnsOfBeat = BusBytes <= 32 ? 1 : BusBytes / 32;
  localparam int unsigned Buffer = tw_cfg_pkg::FetchBufferBeats;
  localparam int unsigned FreeW = $clog2(Buffer + 1);

  ///////////////////
  // Read requests //
  ///////////////////

  // The stream is one row of 32 bytes an instruction.
  logic burst_valid, burst_take, freed, done_q;
  logic [8:0] burst_beats;
  logic [FreeW-1:0] free_q;
  logic [FreeW:0] flying_q;
  if (tw_cfg_pkg::FetchBurstBeats * BusBytes == 32) begin : gen_single
    // A burst is exactly one instruction.
    logic [OffsetBits-1:5] at_q;
    logic [CountW-1:0]     rest_q;
    assign burst_valid = rest_q != '0;
    assign burst_beats = 9'(tw_cfg_pkg::FetchBurstBeats);
    assign ar_addr_o   = {at_q, 5'd0};
    always_ff @(posedge clk_i) begin
      if (!rst_ni) rest_q <= '0;
      else if (start_i) rest_q <= stream_insns_i;
      else if (burst_take) rest_q <= rest_q - 1'b1;
      if (start_i) at_q <= stream_addr_i[OffsetBits-1:5];
      else if (burst_take) at_q <= at_q + 1'b1;
    end
  end else begin : gen_bursts
    logic burst_last, row_ready, unused;
    tw_bursts #(
      .AddrW   (OffsetBits),
      .BusBytes(BusBytes),
      .MaxBeats(tw_cfg_pkg::FetchBurstBeats),
      .BytesW  (CountW + 5),
      .Whole   (BusBytes <= 32)
    ) u_bursts (
      .clk_i,
      .rst_ni,
      .row_valid_i  (start_i && stream_insns_i != '0),
      .row_addr_i   (stream_addr_i),
      .row_bytes_i  ({stream_insns_i, 5'd0}),
      .row_last_i   (1'b1),
      .row_ready_o  (row_ready),
      .burst_valid_o(burst_valid),
      .burst_addr_o (ar_addr_o),
      .burst_beats_o(burst_beats),
      .burst_last_o (burst_last),
      .burst_take_i (burst_take)
    );
    assign unused = ^{row_ready, burst_last};
  end
  assign ar_valid_o = burst_valid && 32'(free_q) >= 32'(burst_beats) && !stop_i;
  assign ar_len_o = 8'(burst_beats - 1'b1);
  assign burst_take = ar_valid_o && ar_grant_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_q   <= FreeW'(Buffer);
      flying_q <= '0;
    end else begin
      free_q   <= free_q - (burst_take ? FreeW'(burst_beats) : '0) + FreeW'(freed);
      flying_q <= flying_q + (burst_take ? (FreeW+1)'(burst_beats) : '0) - (FreeW+1)'(r_valid_i);
    end
  end

  /////////////////
  // Beat buffer //
  /////////////////

  logic [tw_cfg_pkg::BusBits:0] word0, unused_word1;
  logic [2:0]                   avail;
  logic                         pop, empty;
  tw_words #(
    .Width (tw_cfg_pkg::BusBits + 1),
    .Depth (Buffer),
    .Places(tw_cfg_pkg::FrontWords)
  ) u_beats (
    .clk_i,
    .rst_ni,
    .push_i (r_valid_i),
    .data_i ({r_error_i, r_data_i}),
    .pop_i  ({1'b0, pop}),
    .avail_o(avail),
    .word0_o(word0),
    .word1_o(unused_word1),
    .freed_o(freed),
    .empty_o(empty)
  );

  //////////////
  // Assembly //
  //////////////

  localparam bit Lean = tw_cfg_pkg::Lean != 0;
  logic              insn_valid_q, assembled, insn_take, insn_room;
  // The instruction, and the one that is assembled in this cycle
  logic [255:0]      insn_q, insn_d;
  logic [CountW-1:0] left_q, ordinal_q;
  logic [1:0]        unit_q;
  logic              bad_opcode_q, bad_field_q, checked, word_take, word_moving;
  // The next instruction can replace this one. An illegal one is replaced too: it traps, and nothing after it counts.
  assign insn_room = !insn_valid_q || (!Lean && !stop_i && !full_i[unit_q]);

  if (Lean) begin : gen_lean
    // One instruction at a time. Its words shift down as beats arrive, and again as they enter the queue. The bits
    // after the longest instruction must be zero: they are checked and not kept.
    localparam int unsigned WordBits = tw_cfg_pkg::InsnWordBits;
    localparam int unsigned KeptWords = (tw_cfg_pkg::LongestBodyW + 16 + WordBits - 1) / WordBits;
    localparam int unsigned PartW = InsnsOfBeat > 1 ? $clog2(InsnsOfBeat) : 1;
    logic [KeptWords*WordBits-1:0] words_q, words_d;
    logic [WordBits-1:0]           beat;
    logic [PartW-1:0]              part_q;
    logic [3:0]                    place_q, word_q, words;
    logic                          rest_q, rest_d, moving_q, gathers;
    assign beat        = InsnsOfBeat == 1 ? word0[WordBits-1:0] : word0[32'(part_q)*WordBits +: WordBits];
    assign gathers     = avail != '0 && insn_room && (InsnsOfBeat == 1 || left_q != '0);
    assign assembled   = gathers && place_q == 4'(BeatsOfInsn - 1);
    assign pop         = gathers && (InsnsOfBeat == 1 || part_q == PartW'(InsnsOfBeat - 1) || left_q == CountW'(1));
    assign word_moving = moving_q;
    assign word_o      = word_q;
    assign last_o      = word_q == words;
    assign insn_take   = word_take && last_o;
    always_comb begin
      unique case (unit_q)
        2'd0:    words = 4'((tw_cfg_pkg::LoadBodyW + 15) / WordBits);
        2'd1:    words = 4'((tw_cfg_pkg::GemmBodyW + 15) / WordBits);
        2'd2:    words = 4'((tw_cfg_pkg::VectorBodyW + 15) / WordBits);
        default: words = 4'((tw_cfg_pkg::StoreBodyW + 15) / WordBits);
      endcase
      push_o = '0;
      push_o[unit_q] = word_take;
    end
    assign insn_q  = 256'(words_q);
    assign words_d = (KeptWords*WordBits)'({beat, words_q} >> WordBits);
    assign rest_d  = place_q != '0 && (rest_q || (32'(place_q) >= KeptWords && beat != '0));
    // The instruction, with its last beat
    always_comb begin
      insn_d = 32'(place_q) < KeptWords ? 256'(words_d) : 256'(words_q);
      if (KeptWords < BeatsOfInsn && rest_d) insn_d[255] = 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        part_q   <= '0;
        place_q  <= '0;
        word_q   <= '0;
        moving_q <= 1'b0;
        rest_q   <= 1'b0;
      end else begin
        if (start_i) part_q <= PartW'(stream_addr_i >> 5);
        else if (assembled) part_q <= part_q + 1'b1;
        if (gathers) place_q <= assembled ? '0 : place_q + 1'b1;
        if (word_take) word_q <= last_o ? '0 : word_q + 1'b1;
        moving_q <= word_take && !last_o;
        if (gathers && KeptWords < BeatsOfInsn) rest_q <= rest_d;
      end
    end
    always_ff @(posedge clk_i) begin
      if (word_take || (gathers && 32'(place_q) < KeptWords)) words_q <= words_d;
    end
  end else if (InsnsOfBeat == 1) begin : gen_join
    localparam int unsigned BeatW = BeatsOfInsn > 1 ? $clog2(BeatsOfInsn) : 1;
    logic [BeatW-1:0] beat_q;
    assign assembled = avail != '0 && beat_q == BeatW'(BeatsOfInsn - 1) && insn_room;
    // A beat with a bus error stays at the head until the instruction before it is gone.
    assign pop = avail != '0 && (insn_room || (beat_q != BeatW'(BeatsOfInsn - 1) && !word0[tw_cfg_pkg::BusBits]));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) beat_q <= '0;
      else if (pop) beat_q <= (beat_q == BeatW'(BeatsOfInsn - 1)) ? '0 : beat_q + 1'b1;
    end
    if (BeatsOfInsn == 1) begin : gen_whole
      assign insn_d = word0[255:0];
    end else begin : gen_shift
      // The oldest beat shifts down to the lowest bits.
      logic [(BeatsOfInsn-1)*tw_cfg_pkg::BusBits-1:0] parts_q;
      assign insn_d = {word0[tw_cfg_pkg::BusBits-1:0], parts_q};
      always_ff @(posedge clk_i) begin
        if (pop) parts_q <= ((BeatsOfInsn-1)*tw_cfg_pkg::BusBits)'(insn_d >> tw_cfg_pkg::BusBits);
      end
    end
  end else begin : gen_cut
    localparam int unsigned PartW = $clog2(InsnsOfBeat);
    logic [PartW-1:0] part_q;
    assign assembled = avail != '0 && insn_room && left_q != '0;
    assign pop = assembled && (part_q == PartW'(InsnsOfBeat - 1) || left_q == CountW'(1));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) part_q <= '0;
      else if (start_i) part_q <= PartW'(stream_addr_i >> 5);
      else if (assembled) part_q <= part_q + 1'b1;
    end
    assign insn_d = word0[32'(part_q)*256 +: 256];
  end

  ////////////////////////////
  // Decoding and hand-over //
  ////////////////////////////

  logic [1:0] decoded_unit;
  logic       decoded_opcode, decoded_field;
  tw_decode u_decode (
    .valid_i     (avail != '0),
    .insn_i      (insn_d),
    .unit_o      (decoded_unit),
    .bad_opcode_o(decoded_opcode),
    .bad_field_o (decoded_field)
  );
  // Decoded in the cycle in which it is assembled, so that the result is registered with the instruction
  always_ff @(posedge clk_i) begin
    if (assembled) begin
      unit_q       <= decoded_unit;
      bad_opcode_q <= decoded_opcode;
      bad_field_q  <= decoded_field;
    end
  end

  assign checked   = insn_valid_q && !word_moving;
  assign word_take = !stop_i && (word_moving || (checked && !bad_opcode_q && !bad_field_q && !full_i[unit_q]));
  if (!Lean) begin : gen_whole_push
    always_ff @(posedge clk_i) begin
      if (assembled) insn_q <= insn_d;
    end
    assign word_moving = 1'b0;
    assign insn_take   = word_take;
    assign word_o      = '0;
    assign last_o      = 1'b1;
    always_comb begin
      push_o = '0;
      push_o[unit_q] = insn_take;
    end
  end
  assign insn_o = insn_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      insn_valid_q <= 1'b0;
      left_q       <= '0;
      ordinal_q    <= '0;
      done_q       <= 1'b1;
    end else begin
      if (start_i) begin
        left_q    <= stream_insns_i;
        ordinal_q <= '0;
        done_q    <= stream_insns_i == '0;
      end else begin
        if (assembled) left_q <= left_q - 1'b1;
        if (insn_take) begin
          ordinal_q <= ordinal_q + 1'b1;
          if (left_q == '0 && !assembled) done_q <= 1'b1;
        end
      end
      if (assembled) insn_valid_q <= 1'b1;
      else if (insn_take) insn_valid_q <= 1'b0;
    end
  end

  /////////////////////
  // Traps and state //
  /////////////////////

  logic bus_trap;
  assign bus_trap  = avail != '0 && word0[tw_cfg_pkg::BusBits] && insn_room && !stop_i;
  assign ordinal_o = ordinal_q;
  assign done_o    = done_q;
  assign held_o    = checked && full_i[unit_q];
  assign quiet_o   = flying_q == '0;
  assign trap_o    = bus_trap || (checked && (bad_opcode_q || bad_field_q) && !stop_i);
  // A waiting instruction is older than the beats behind it, so its trap comes first.
  always_comb begin
    trap_cause_o = tw_isa_pkg::CauseBus;
    trap_behind_o = insn_valid_q;
    if (checked && (bad_opcode_q || bad_field_q)) begin
      trap_cause_o = bad_opcode_q ? tw_isa_pkg::CauseOpcode : tw_isa_pkg::CauseField;
      trap_behind_o = 1'b0;
    end
  end

  always_comb begin
    if (done_q) state_o = tw_isa_pkg::StateEmpty;
    else if (held_o) state_o = tw_isa_pkg::StateSpace;
    else if (insn_valid_q) state_o = tw_isa_pkg::StateBusy;
    else if (ar_valid_o && !ar_grant_i) state_o = tw_isa_pkg::StateRequest;
    else state_o = tw_isa_pkg::StateData;
  end

  logic unused;
  assign unused = ^{stream_addr_i, r_last_i, empty, unused_word1};

  ////////////////
  // Assertions //
  ////////////////

  // An instruction goes to one queue, and only to one with a free place.
  `TW_ASSERT(OneQueue_A, $onehot0(push_o))
  `TW_ASSERT(QueueHasPlace_A, word_moving || (push_o & full_i) == '0)

endmodule
