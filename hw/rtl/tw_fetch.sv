// The fetch unit: reads the stream, cuts it into instructions, and hands each to its unit's queue in order.
module tw_fetch (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           stop_i,
  input  logic                           start_i,
  input  logic [tw_cfg_pkg::OffsetBits-1:0] stream_addr_i,
  input  logic [tw_cfg_pkg::CountW-1:0]  stream_insns_i,
  output logic                           ar_valid_o,
  input  logic                           ar_grant_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] ar_addr_o,
  output logic [7:0]                     ar_len_o,
  input  logic                           r_valid_i,
  input  logic [tw_cfg_pkg::BusBits-1:0] r_data_i,
  input  logic                           r_error_i,
  input  logic                           r_last_i,
  output logic [3:0]                     push_o,
  // The instruction, or where lean its rest, of which the lowest word enters a queue.
  output logic [255:0]                   insn_o,
  output logic [3:0]                     word_o,
  output logic                           last_o,
  input  logic [3:0]                     full_i,
  output logic                           done_o,
  output logic                           held_o,
  output logic                           quiet_o,
  output logic [3:0]                     state_o,
  output logic                           trap_o,
  output logic [3:0]                     trap_cause_o,
  // Instructions handed out; the trap is of the one behind the next.
  output logic [tw_cfg_pkg::CountW-1:0]  ordinal_o,
  output logic                           trap_behind_o
);

  localparam int unsigned BusBytes = tw_cfg_pkg::BusBytes;
  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned CountW = tw_cfg_pkg::CountW;
  // Beats of an instruction, or instructions of a beat.
  localparam int unsigned Beats = BusBytes >= 32 ? 1 : 32 / BusBytes;
  localparam int unsigned Parts = BusBytes <= 32 ? 1 : BusBytes / 32;
  localparam int unsigned Buffer = tw_cfg_pkg::FetchBufferBeats;
  localparam int unsigned FreeW = $clog2(Buffer + 1);

  // Requests: the stream is one row of 32 bytes an instruction.
  logic burst_valid, take, freed, done_q;
  logic [8:0] burst_beats;
  logic [FreeW-1:0] free_q;
  logic [FreeW:0] flying_q;
  if (tw_cfg_pkg::FetchBurstBeats * BusBytes == 32) begin : gen_single
    // A burst is an instruction.
    logic [OffsetBits-1:5] at_q;
    logic [CountW-1:0]     rest_q;
    assign burst_valid = rest_q != '0;
    assign burst_beats = 9'(tw_cfg_pkg::FetchBurstBeats);
    assign ar_addr_o   = {at_q, 5'd0};
    always_ff @(posedge clk_i) begin
      if (!rst_ni) rest_q <= '0;
      else if (start_i) rest_q <= stream_insns_i;
      else if (take) rest_q <= rest_q - 1'b1;
      if (start_i) at_q <= stream_addr_i[OffsetBits-1:5];
      else if (take) at_q <= at_q + 1'b1;
    end
  end else begin : gen_bursts
    logic burst_last, row_ready, unused;
    tw_bursts #(.AddrW(OffsetBits), .BusBytes(BusBytes), .MaxBeats(tw_cfg_pkg::FetchBurstBeats), .BytesW(CountW + 5),
      .Whole(BusBytes <= 32)) u_bursts (
      .clk_i, .rst_ni, .row_valid_i(start_i && stream_insns_i != '0), .row_addr_i(stream_addr_i),
      .row_bytes_i({stream_insns_i, 5'd0}), .row_last_i(1'b1), .row_ready_o(row_ready), .burst_valid_o(burst_valid),
      .burst_addr_o(ar_addr_o), .burst_beats_o(burst_beats), .burst_last_o(burst_last), .burst_take_i(take)
    );
    assign unused = ^{row_ready, burst_last};
  end
  assign ar_valid_o = burst_valid && 32'(free_q) >= 32'(burst_beats) && !stop_i;
  assign ar_len_o = 8'(burst_beats - 1'b1);
  assign take = ar_valid_o && ar_grant_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_q   <= FreeW'(Buffer);
      flying_q <= '0;
    end else begin
      free_q   <= free_q - (take ? FreeW'(burst_beats) : '0) + FreeW'(freed);
      flying_q <= flying_q + (take ? (FreeW+1)'(burst_beats) : '0) - (FreeW+1)'(r_valid_i);
    end
  end

  // Beats.
  logic [tw_cfg_pkg::BusBits:0] word0, unused_word1;
  logic [2:0] avail;
  logic       pop, empty;
  tw_words #(.Width(tw_cfg_pkg::BusBits + 1), .Depth(Buffer), .Places(tw_cfg_pkg::FrontWords)) u_beats (
    .clk_i, .rst_ni, .push_i(r_valid_i), .data_i({r_error_i, r_data_i}), .pop_i({1'b0, pop}), .avail_o(avail),
    .word0_o(word0), .word1_o(unused_word1), .freed_o(freed), .empty_o(empty)
  );

  // Instructions.
  localparam bit Lean = tw_cfg_pkg::Lean != 0;
  logic         insn_valid_q, assembled, insn_take, slot;
  // The instruction, and the one that comes in this cycle, if one does.
  logic [255:0] insn_q, insn_d;
  logic [CountW-1:0] left_q, ordinal_q;
  logic [1:0]   unit;
  logic         bad_opcode, bad_field, checked, word_take, moving;
  // Place for the next instruction: one that is wrong traps, and then nothing counts that follows.
  assign slot = !insn_valid_q || (!Lean && !stop_i && !full_i[unit]);

  if (Lean) begin : gen_lean
    // One instruction at a time: its words move down as beats come and as they enter its queue. What lies behind the
    // longest instruction must be zero and is not kept.
    localparam int unsigned Word = tw_cfg_pkg::InsnWordBits;
    localparam int unsigned Kept = (tw_cfg_pkg::LongestBodyW + 16 + Word - 1) / Word;
    localparam int unsigned PartW = Parts > 1 ? $clog2(Parts) : 1;
    logic [Kept*Word-1:0] words_q, words_d;
    logic [Word-1:0]      beat;
    logic [PartW-1:0]     part_q;
    logic [3:0]           place_q, word_q, words;
    logic                 rest_q, rest_d, moving_q, gathers;
    assign beat      = Parts == 1 ? word0[Word-1:0] : word0[32'(part_q)*Word +: Word];
    assign gathers   = avail != '0 && slot && (Parts == 1 || left_q != '0);
    assign assembled = gathers && place_q == 4'(Beats - 1);
    assign pop       = gathers && (Parts == 1 || part_q == PartW'(Parts - 1) || left_q == CountW'(1));
    assign moving    = moving_q;
    assign word_o    = word_q;
    assign last_o    = word_q == words;
    assign insn_take = word_take && last_o;
    always_comb begin
      case (unit)
        2'd0:    words = 4'((tw_cfg_pkg::LoadBodyW + 15) / Word);
        2'd1:    words = 4'((tw_cfg_pkg::GemmBodyW + 15) / Word);
        2'd2:    words = 4'((tw_cfg_pkg::VectorBodyW + 15) / Word);
        default: words = 4'((tw_cfg_pkg::StoreBodyW + 15) / Word);
      endcase
      push_o = '0;
      push_o[unit] = word_take;
    end
    assign insn_q  = 256'(words_q);
    assign words_d = (Kept*Word)'({beat, words_q} >> Word);
    assign rest_d  = place_q != '0 && (rest_q || (32'(place_q) >= Kept && beat != '0));
    // With its last beat.
    always_comb begin
      insn_d = 32'(place_q) < Kept ? 256'(words_d) : 256'(words_q);
      if (Kept < Beats && rest_d) insn_d[255] = 1'b1;
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
        if (gathers && Kept < Beats) rest_q <= rest_d;
      end
    end
    always_ff @(posedge clk_i) begin
      if (word_take || (gathers && 32'(place_q) < Kept)) words_q <= words_d;
    end
  end else if (Parts == 1) begin : gen_join
    localparam int unsigned BeatW = Beats > 1 ? $clog2(Beats) : 1;
    logic [BeatW-1:0] beat_q;
    assign assembled = avail != '0 && beat_q == BeatW'(Beats - 1) && slot;
    // A beat with an error stays at the head until the instruction before has gone.
    assign pop = avail != '0 && (slot || (beat_q != BeatW'(Beats - 1) && !word0[tw_cfg_pkg::BusBits]));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) beat_q <= '0;
      else if (pop) beat_q <= (beat_q == BeatW'(Beats - 1)) ? '0 : beat_q + 1'b1;
    end
    if (Beats == 1) begin : gen_whole
      assign insn_d = word0[255:0];
    end else begin : gen_shift
      // The oldest beat moves down to the lowest bits while the instruction is put together.
      logic [(Beats-1)*tw_cfg_pkg::BusBits-1:0] parts_q;
      assign insn_d = {word0[tw_cfg_pkg::BusBits-1:0], parts_q};
      always_ff @(posedge clk_i) begin
        if (pop) parts_q <= ((Beats-1)*tw_cfg_pkg::BusBits)'(insn_d >> tw_cfg_pkg::BusBits);
      end
    end
  end else begin : gen_cut
    localparam int unsigned PartW = $clog2(Parts);
    logic [PartW-1:0] part_q;
    assign assembled = avail != '0 && slot && left_q != '0;
    assign pop = assembled && (part_q == PartW'(Parts - 1) || left_q == CountW'(1));
    always_ff @(posedge clk_i) begin
      if (!rst_ni) part_q <= '0;
      else if (start_i) part_q <= PartW'(stream_addr_i >> 5);
      else if (assembled) part_q <= part_q + 1'b1;
    end
    assign insn_d = word0[32'(part_q)*256 +: 256];
  end

  logic [1:0] decoded_unit;
  logic       decoded_opcode, decoded_field;
  tw_decode u_decode (
    .valid_i(avail != '0), .insn_i(insn_d), .unit_o(decoded_unit),
    .bad_opcode_o(decoded_opcode), .bad_field_o(decoded_field)
  );
  // Decoded as it comes: what it is, and who may have it, is known with it.
  always_ff @(posedge clk_i) begin
    if (assembled) begin
      unit       <= decoded_unit;
      bad_opcode <= decoded_opcode;
      bad_field  <= decoded_field;
    end
  end

  assign checked   = insn_valid_q && !moving;
  assign word_take = !stop_i && (moving || (checked && !bad_opcode && !bad_field && !full_i[unit]));
  if (!Lean) begin : gen_whole_push
    always_ff @(posedge clk_i) begin
      if (assembled) insn_q <= insn_d;
    end
    assign moving    = 1'b0;
    assign insn_take = word_take;
    assign word_o    = '0;
    assign last_o    = 1'b1;
    always_comb begin
      push_o = '0;
      push_o[unit] = insn_take;
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

  logic bus_trap;
  assign bus_trap = avail != '0 && word0[tw_cfg_pkg::BusBits] && slot && !stop_i;
  assign ordinal_o = ordinal_q;
  assign done_o  = done_q;
  assign held_o  = checked && full_i[unit];
  assign quiet_o = flying_q == '0;
  assign trap_o  = bus_trap || (checked && (bad_opcode || bad_field) && !stop_i);
  // An instruction that waits comes before the beats behind it.
  always_comb begin
    trap_cause_o = tw_isa_pkg::CauseBus;
    trap_behind_o = insn_valid_q;
    if (checked && (bad_opcode || bad_field)) begin
      trap_cause_o = bad_opcode ? tw_isa_pkg::CauseOpcode : tw_isa_pkg::CauseField;
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

endmodule
