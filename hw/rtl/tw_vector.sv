`include "tw_fields.svh"

// The vector unit: rows of batch x block_out elements, simple operations on the vector lanes with forwarding, deep ones
// on the requantize lanes without.
//
// Stages: 0 issue (micro-op memory) | 1 index | 2 operand read | 3 operands, which pass a register where VectorStages is not 0 | simple
// operations compute in 3 and write in 4 | deep: 3 to 7 scale, 8 assemble, write in 9; a quantized addition enters the lanes
// thrice, its sum five cycles after its first operand. Serial lanes scale for PassCycles instead of five, and passes are
// issued so far apart. From the lanes on, registers before them make a stage's number greater.
module tw_vector (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic                           stop_i,
  input  logic                           insn_valid_i,
  input  logic [tw_cfg_pkg::VectorBodyW-1:0] insn_i,
  input  logic [3:0]                     insn_push_i,
  output logic                           insn_free_o,
  output logic                           uop_re_o,
  output logic [tw_cfg_pkg::VuopW-1:0]   uop_addr_o,
  input  logic [tw_cfg_pkg::VuopEntryBytes*8-1:0] uop_data_i,
  // Operand reads: bit 0 operand a, bit 1 operand b.
  output logic [1:0]                     acc_re_o,
  output logic [2*tw_cfg_pkg::AccW-1:0]  acc_raddr_o,
  input  logic [2*tw_cfg_pkg::AccEntryBytes*8-1:0] acc_rdata_i,
  output logic [1:0]                     out_re_o,
  output logic [2*$clog2(tw_cfg_pkg::OutDepth)-1:0] out_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0] out_rdata_i,
  output logic [1:0]                     inp_re_o,
  output logic [2*tw_cfg_pkg::InpW-1:0]  inp_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0] inp_rdata_i,
  output logic                           param_re_o,
  output logic [tw_cfg_pkg::DescW-1:0]   param_addr_o,
  input  logic [tw_isa_pkg::ParamRows*tw_cfg_pkg::BlockOut*8-1:0] param_data_i,
  // Row writes.
  output logic                           acc_we_o,
  output logic                           out_we_o,
  output logic                           inp_we_o,
  output logic [tw_cfg_pkg::VecW-1:0]    waddr_o,
  output logic [tw_cfg_pkg::AccEntryBytes*8-1:0] wdata32_o,
  output logic [tw_cfg_pkg::OutEntryBytes*8-1:0] wdata8_o,
  output logic                           retire_o,
  output logic [3:0]                     retire_push_o,
  output logic                           busy_o,
  output logic                           working_o,
  output logic                           trap_o,
  output logic [31:0]                    trap_ordinal_o,
  // The instruction that reads its operands' rows.
  output logic [31:0]                    read_ordinal_o
);

  localparam int unsigned E = tw_cfg_pkg::RowElements;
  localparam int unsigned LanesV = tw_cfg_pkg::VectorLanes;
  localparam int unsigned SlicesV = E / LanesV;
  localparam int unsigned LanesR = tw_cfg_pkg::RequantLanes;
  localparam int unsigned SlicesR = E / LanesR;
  localparam int unsigned SlicesMax = SlicesV > SlicesR ? SlicesV : SlicesR;
  localparam int unsigned SliceW = SlicesMax > 1 ? $clog2(SlicesMax) : 1;
  localparam int unsigned IndexW = tw_cfg_pkg::VecW;
  localparam int unsigned OffW = IndexW + 1;
  localparam int unsigned SumW = IndexW + 2;
  localparam int unsigned BodyW = tw_cfg_pkg::VectorBodyW;
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::OutDepth);
  localparam int unsigned Bo = tw_cfg_pkg::BlockOut;
  // Cycles from an instruction's last issue until nothing of it is under way.
  localparam logic [4:0]  DrainCycles = 5'd16;
  localparam int unsigned DescEntries = tw_cfg_pkg::DescriptorEntries;
  localparam int unsigned DescEntryBits = tw_isa_pkg::ParamRows * Bo * 8;
  // A lookup's table is read in words of eight bytes, a part of a param entry's first eight rows.
  localparam int unsigned TableWords = tw_isa_pkg::TableBytes / 8;
  localparam int unsigned EntryWords = Bo < TableWords ? Bo : TableWords;
  localparam int unsigned DescCountW = $clog2((DescEntries > TableWords ? DescEntries : TableWords) + 2);

  typedef struct packed {
    logic [4:0] op;
    logic       single;
    logic [1:0] dst;
    logic [1:0] a;
    logic [2:0] b;
  } ctl_t;

  typedef struct packed {
    logic               last;
    logic               row_last;
    logic [SliceW-1:0]  slice;
    // The pass of a quantized addition's second operand.
    logic               second;
    logic [3:0]         push;
  } tag_t;

  // Start of instructions.
  typedef enum logic [1:0] {StIdle, StDrain, StDesc, StRun} state_e;
  state_e             state_q;
  logic [BodyW-1:0]   cur_q;
  logic [3:0]         cur_push_q;
  logic [31:0]        ordinal_q;
  logic [1:0]         starts_q;
  logic               deep_q, prev_deep_q;
  logic [4:0]         drain_q;
  logic [DescCountW-1:0] desc_q;
  logic [DescEntries*DescEntryBits-1:0] descriptor_q;
  logic               head_deep, head_desc, direct, start, launch, desc_range, issue, step, walk_valid, walk_last, walk_range;
  logic [SliceW-1:0]  slice_q;
  logic [1:0]         phase_q;
  logic               last_pass, pass_first, pass_last;
  logic [3*OffW-1:0]  walk_offsets;
  logic               cur_needs_desc, cur_lut;
  logic [DescCountW-1:0] desc_last;

  function automatic logic is_deep(input logic [4:0] op);
    is_deep = tw_isa_pkg::VecsDeep[op];
  endfunction

  function automatic logic needs_desc(input logic [4:0] op, input logic [2:0] b);
    needs_desc = tw_isa_pkg::VecsWithConstants[op] || b == tw_isa_pkg::SrcScalar;
  endfunction

  assign head_deep = is_deep(`TW_FIELD(vector, op, insn_i));
  assign head_desc = needs_desc(`TW_FIELD(vector, op, insn_i), `TW_FIELD(vector, b, insn_i));
  assign cur_needs_desc = needs_desc(`TW_FIELD(vector, op, cur_q), `TW_FIELD(vector, b, cur_q));
  assign direct = !head_deep && !head_desc && !prev_deep_q;
  assign insn_free_o = state_q == StIdle || (state_q == StRun && walk_valid && last_pass && walk_last);
  assign start = insn_valid_i && !stop_i && insn_free_o;
  assign cur_lut = tw_cfg_pkg::VectorLut != 0 && `TW_FIELD(vector, op, cur_q) == tw_isa_pkg::VecLut;
  assign desc_last = cur_lut ? DescCountW'(TableWords) : DescCountW'(DescEntries);
  assign desc_range = 32'(`TW_FIELD(vector, descriptor, cur_q)) + (cur_lut ? tw_cfg_pkg::TableEntries : DescEntries) >
                      tw_cfg_pkg::ParamDepth;
  assign launch = (start && direct) ||
                  (state_q == StDrain && drain_q == '0 && !cur_needs_desc && !stop_i) ||
                  (state_q == StDesc && desc_q == desc_last && !stop_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StIdle;
      ordinal_q   <= '1;
      starts_q    <= '0;
      prev_deep_q <= 1'b0;
      drain_q     <= '0;
    end else begin
      if (start) ordinal_q <= ordinal_q + 1'b1;
      starts_q <= {starts_q[0], start};
      if (start) prev_deep_q <= head_deep;
      if (issue) drain_q <= DrainCycles;
      else if (drain_q != '0) drain_q <= drain_q - 1'b1;
      if (launch) state_q <= StRun;
      else if (start) state_q <= StDrain;
      else if (stop_i) state_q <= StIdle;
      else if (state_q == StDrain && drain_q == '0) state_q <= StDesc;
      else if (state_q == StRun && step && walk_last) state_q <= StIdle;
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      cur_q      <= insn_i;
      cur_push_q <= insn_push_i;
      deep_q     <= head_deep;
    end
    if (state_q != StDesc) desc_q <= '0;
    else desc_q <= desc_q + 1'b1;
    for (int unsigned k = 0; k < DescEntries; k++) begin
      if (state_q == StDesc && !cur_lut && desc_q == DescCountW'(k + 1)) begin
        descriptor_q[k*DescEntryBits +: DescEntryBits] <= param_data_i;
      end
    end
  end

  // The lookup's table; a word is written in the cycle after its entry was asked for.
  logic [63:0]           table_q [TableWords];
  logic [DescCountW-1:0] table_at;
  assign table_at = desc_q - 1'b1;
  always_ff @(posedge clk_i) begin
    if (state_q == StDesc && cur_lut && desc_q != '0) begin
      table_q[table_at[$clog2(TableWords)-1:0]] <= param_data_i[(32'(table_at) % EntryWords) * 64 +: 64];
    end
  end

  // The descriptor's fields.
  logic [tw_isa_pkg::DescriptorBytes*8-1:0] d;
  logic [31:0] d_scalar, d_lo, d_hi;
  logic [7:0]  d_za, d_zb;
  assign d = descriptor_q[tw_isa_pkg::DescriptorBytes*8-1:0];
  assign d_scalar = d[tw_isa_pkg::DescScalarLsb +: 32];
  assign d_lo     = d[tw_isa_pkg::DescLoLsb +: 32];
  assign d_hi     = d[tw_isa_pkg::DescHiLsb +: 32];
  assign d_za     = d[tw_isa_pkg::DescZeroALsb +: 8];
  assign d_zb     = d[tw_isa_pkg::DescZeroBLsb +: 8];

  // Issue: a row takes one pass for each slice, three for a quantized addition, of which the third is left for the sum.
  ctl_t ctl;
  assign ctl.op     = `TW_FIELD(vector, op, cur_q);
  assign ctl.single = `TW_FIELD(vector, mode, cur_q);
  assign ctl.dst    = `TW_FIELD(vector, dst, cur_q);
  assign ctl.a      = `TW_FIELD(vector, a, cur_q);
  assign ctl.b      = `TW_FIELD(vector, b, cur_q);

  logic               is_qadd, slice_last;
  assign is_qadd    = ctl.op == tw_isa_pkg::VecQadd;
  assign slice_last = slice_q == (deep_q ? SliceW'(SlicesR - 1) : SliceW'(SlicesV - 1));
  assign last_pass  = slice_last && (!is_qadd || phase_q == 2'd2) && pass_last;
  assign issue      = state_q == StRun && walk_valid && !stop_i;
  assign step       = issue && last_pass;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || launch) begin
      slice_q <= '0;
      phase_q <= '0;
    end else if (issue && pass_last) begin
      if (is_qadd && phase_q != 2'd2) begin
        phase_q <= phase_q + 1'b1;
      end else begin
        phase_q <= '0;
        slice_q <= slice_last ? '0 : slice_q + 1'b1;
      end
    end
  end

  // Cycles of a pass: one, but for serial lanes.
  if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial
    localparam int unsigned CountW = $clog2(tw_cfg_pkg::PassCycles);
    logic [CountW-1:0] cycle_q;
    assign pass_first = !deep_q || cycle_q == '0;
    assign pass_last  = !deep_q || cycle_q == CountW'(tw_cfg_pkg::PassCycles - 1);
    always_ff @(posedge clk_i) begin
      if (!rst_ni || launch) cycle_q <= '0;
      else if (issue) cycle_q <= pass_last ? '0 : cycle_q + 1'b1;
    end
  end else begin : gen_parallel
    assign pass_first = 1'b1;
    assign pass_last  = 1'b1;
  end

  logic [3*IndexW-1:0] bases;
  logic [9*IndexW-1:0] steps;
  logic [3*tw_cfg_pkg::LoopW-1:0] counts;
  // The walk begins with the start and waits for the launch. Fields are taken apart only then.
  always_comb begin
    counts = 'x;
    bases = 'x;
    steps = 'x;
    if (start) begin
      counts = {`TW_FIELD(vector, count2, insn_i), `TW_FIELD(vector, count1, insn_i), `TW_FIELD(vector, count0, insn_i)};
      bases = {`TW_FIELD(vector, b_at, insn_i), `TW_FIELD(vector, a_at, insn_i), `TW_FIELD(vector, dst_at, insn_i)};
      steps = {`TW_FIELD(vector, b2, insn_i), `TW_FIELD(vector, a2, insn_i), `TW_FIELD(vector, dst2, insn_i),
                   `TW_FIELD(vector, b1, insn_i), `TW_FIELD(vector, a1, insn_i), `TW_FIELD(vector, dst1, insn_i),
                   `TW_FIELD(vector, b0, insn_i), `TW_FIELD(vector, a0, insn_i), `TW_FIELD(vector, dst0, insn_i)};
    end
  end

  tw_walk #(
    .UopW(tw_cfg_pkg::VuopW), .UopDepth(tw_cfg_pkg::VectorUopDepth), .LoopW(tw_cfg_pkg::LoopW), .IndexW(IndexW),
    .Loops(tw_cfg_pkg::Loops)
  ) u_walk (
    .clk_i, .rst_ni, .start_i(start), .uop_i(`TW_FIELD(vector, uop, insn_i)), .uops_i(`TW_FIELD(vector, uops, insn_i)),
    .counts_i(counts), .bases_i(bases), .steps_i(steps), .step_i(step),
    .valid_o(walk_valid), .last_o(walk_last), .uop_range_o(walk_range), .uop_o(uop_addr_o), .offsets_o(walk_offsets)
  );
  assign uop_re_o = issue;

  // Stages 1 to 3.
  logic [3:1]        valid_q;
  ctl_t              ctl1_q, ctl2_q, ctl3_q;
  tag_t              tag0, tag1_q, tag2_q, tag3_q;
  logic              range1_q, bad_q;
  logic [31:0]       ordinal2;
  logic [3*OffW-1:0] offsets1_q;
  logic [SumW-1:0]   dst2_q, a2_q, b2_q;
  logic [IndexW-1:0] dst3_q, a3_q, b3_q;
  logic [SumW-1:0]   dst1, a1, b1;
  logic              bad1, uop_trap, desc_trap;

  assign tag0.last     = walk_last && slice_last && (!is_qadd || phase_q == 2'd1);
  assign tag0.row_last = slice_last;
  assign tag0.slice    = slice_q;
  assign tag0.second   = phase_q != 2'd0;
  assign tag0.push     = cur_push_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else begin
      valid_q <= {valid_q[2] && !uop_trap && !stop_i, valid_q[1] && !uop_trap && !stop_i,
                  issue && pass_first && !(is_qadd && phase_q == 2'd2) && !uop_trap};
    end
  end

  always_ff @(posedge clk_i) begin
    if (issue) begin
      ctl1_q     <= ctl;
      tag1_q     <= tag0;
      range1_q   <= walk_range;
      offsets1_q <= walk_offsets;
    end
    if (valid_q[1]) begin
      ctl2_q     <= ctl1_q;
      tag2_q     <= tag1_q;
      bad_q      <= bad1;
      dst2_q     <= dst1;
      a2_q       <= a1;
      b2_q       <= b1;
    end
    if (valid_q[2]) begin
      ctl3_q <= ctl2_q;
      tag3_q <= tag2_q;
      dst3_q <= dst2_q[IndexW-1:0];
      a3_q   <= a2_q[IndexW-1:0];
      b3_q   <= b2_q[IndexW-1:0];
    end
  end

  // Of param, an index counts entries, or the rows of entries for a multiply-accumulate.
  function automatic logic past(input logic [SumW-1:0] index, input logic [2:0] src, input logic taps);
    case (src)
      tw_isa_pkg::SrcAcc:   past = 32'(index) >= tw_cfg_pkg::AccDepth;
      tw_isa_pkg::SrcOut:   past = 32'(index) >= tw_cfg_pkg::OutDepth;
      tw_isa_pkg::SrcInp:   past = 32'(index) >= tw_cfg_pkg::InpDepth;
      tw_isa_pkg::SrcParam: past = taps ? 32'(index) / tw_isa_pkg::TapStride >= tw_cfg_pkg::ParamDepth ||
                                          32'(index) % tw_isa_pkg::TapStride >= tw_isa_pkg::ParamRows
                                        : 32'(index) >= tw_cfg_pkg::ParamDepth;
      default:              past = 1'b0;
    endcase
  endfunction

  logic mac1, mac2, mac3;
  assign mac1 = tw_cfg_pkg::VectorMac != 0 && ctl1_q.op == tw_isa_pkg::VecMac;
  assign mac2 = tw_cfg_pkg::VectorMac != 0 && ctl2_q.op == tw_isa_pkg::VecMac;
  assign mac3 = tw_cfg_pkg::VectorMac != 0 && ctl3_q.op == tw_isa_pkg::VecMac;
  always_comb begin
    dst1 = 'x;
    a1 = 'x;
    b1 = 'x;
    bad1 = 'x;
    if (valid_q[1]) begin
      dst1 = SumW'(uop_data_i[0 +: IndexW]) + SumW'(offsets1_q[0 +: OffW]);
      a1 = SumW'(uop_data_i[IndexW +: IndexW]) + SumW'(offsets1_q[OffW +: OffW]);
      b1 = SumW'(uop_data_i[2*IndexW +: IndexW]) + SumW'(offsets1_q[2*OffW +: OffW]);
      bad1 = range1_q || past(dst1, {1'b0, ctl1_q.dst}, 1'b0) || past(a1, {1'b0, ctl1_q.a}, 1'b0) || past(b1, ctl1_q.b, mac1);
    end
  end
  assign uop_trap  = valid_q[2] && bad_q && !stop_i;
  assign desc_trap = state_q == StDesc && desc_q == '0 && desc_range && !stop_i;
  assign trap_o = uop_trap || desc_trap;
  assign trap_ordinal_o = uop_trap ? ordinal2 : ordinal_q;
  // Less what has started since the issue.
  assign ordinal2 = ordinal_q - 32'(starts_q[0]) - 32'(starts_q[1]);
  assign read_ordinal_o = ordinal2;

  logic read2;
  assign read2 = valid_q[2] && !bad_q && !stop_i;
  assign acc_re_o = {read2 && ctl2_q.b == tw_isa_pkg::SrcAcc, read2 && ({1'b0, ctl2_q.a} == tw_isa_pkg::SrcAcc || mac2)};
  assign out_re_o = {read2 && ctl2_q.b == tw_isa_pkg::SrcOut, read2 && {1'b0, ctl2_q.a} == tw_isa_pkg::SrcOut};
  // Inp is only reached where its rows are out's; the decoder sees to that.
  localparam bit Inp = tw_cfg_pkg::VectorReachesInp != 0;
  assign inp_re_o = {Inp && read2 && ctl2_q.b == tw_isa_pkg::SrcInp, Inp && read2 && {1'b0, ctl2_q.a} == tw_isa_pkg::SrcInp};
  // A multiply-accumulate reads its destination through operand a's port, which its int8 operand leaves free.
  assign acc_raddr_o = {tw_cfg_pkg::AccW'(b2_q), tw_cfg_pkg::AccW'(mac2 ? dst2_q : a2_q)};
  assign out_raddr_o = {OutW'(b2_q), OutW'(a2_q)};
  assign inp_raddr_o = {tw_cfg_pkg::InpW'(b2_q), tw_cfg_pkg::InpW'(a2_q)};
  assign param_re_o = (read2 && ctl2_q.b == tw_isa_pkg::SrcParam) || (state_q == StDesc && !stop_i);
  logic [tw_cfg_pkg::DescW-1:0] desc_entry, b_entry;
  assign desc_entry = tw_cfg_pkg::DescW'(cur_lut ? 32'(desc_q) / EntryWords : 32'(desc_q));
  assign b_entry = tw_cfg_pkg::DescW'(mac2 ? b2_q >> $clog2(tw_isa_pkg::TapStride) : b2_q);
  assign param_addr_o = state_q == StDesc ? `TW_FIELD(vector, descriptor, cur_q) + desc_entry : b_entry;

  // Row writes: a simple row in stage 4, a deep one in stage 9. Rows are kept as 32-bit elements, narrowed where the
  // destination is int8, so that they can be forwarded.
  logic              wr_valid_q, wr1_valid_q, wr_last_q;
  logic [1:0]        wr_dst_q, wr1_dst_q;
  logic [3:0]        wr_push_q;
  logic [IndexW-1:0] wr_at_q, wr1_at_q;
  logic [E*32-1:0]   wr_row_q, wr1_row;
  logic [LanesV*32-1:0] simple_part;
  logic [LanesR*32-1:0] deep_result, deep_part;
  logic [SliceW-1:0] deep_slice;

  // Stage 3, simple operations.
  logic                 simple3, fwd_a0, fwd_a1, fwd_b0, fwd_b1;
  logic [E*32-1:0]      a_full, b_full, c_full;
  logic [E*8-1:0]       a_bytes, b_bytes;
  assign simple3 = valid_q[3] && !is_deep(ctl3_q.op);
  assign fwd_a0 = wr_valid_q && wr_dst_q == ctl3_q.a && wr_at_q == a3_q;
  assign fwd_a1 = wr1_valid_q && wr1_dst_q == ctl3_q.a && wr1_at_q == a3_q;
  assign fwd_b0 = wr_valid_q && {1'b0, wr_dst_q} == ctl3_q.b && wr_at_q == b3_q;
  assign fwd_b1 = wr1_valid_q && {1'b0, wr1_dst_q} == ctl3_q.b && wr1_at_q == b3_q;
  assign a_bytes = !Inp || {1'b0, ctl3_q.a} == tw_isa_pkg::SrcOut ? out_rdata_i[0 +: E*8] : inp_rdata_i[0 +: E*8];
  assign b_bytes = !Inp || ctl3_q.b == tw_isa_pkg::SrcOut ? out_rdata_i[E*8 +: E*8] : inp_rdata_i[E*8 +: E*8];

  // The bias, multiplier and shift of each channel of the param entry that was read.
  logic [Bo*32-1:0] p_bias, p_multiplier;
  logic [Bo*8-1:0]  p_shift;
  logic             param3;
  assign param3 = valid_q[3] && ctl3_q.b == tw_isa_pkg::SrcParam;
  always_comb begin
    p_bias = 'x;
    p_multiplier = 'x;
    p_shift = 'x;
    if (param3) begin
      for (int unsigned c = 0; c < Bo; c++) begin
        for (int unsigned k = 0; k < 4; k++) begin
          p_bias[c*32 + k*8 +: 8] = param_data_i[((tw_isa_pkg::ParamBiasRow + k)*Bo + c)*8 +: 8];
          p_multiplier[c*32 + k*8 +: 8] = param_data_i[((tw_isa_pkg::ParamMultiplierRow + k)*Bo + c)*8 +: 8];
        end
        p_shift[c*8 +: 8] = param_data_i[(tw_isa_pkg::ParamShiftRow*Bo + c)*8 +: 8];
      end
    end
  end

  // A multiply-accumulate's rows of bytes and of taps, and its destination as it was.
  logic [Bo*8-1:0] taps;
  logic [E*8-1:0]  mac_row;
  always_comb begin
    taps = 'x;
    mac_row = 'x;
    c_full = 'x;
    if (simple3 && mac3) begin
      for (int unsigned e = 0; e < E; e++) begin
        mac_row[e*8 +: 8] = fwd_a0 ? wr_row_q[e*32 +: 8] : (fwd_a1 ? wr1_row[e*32 +: 8] : a_bytes[e*8 +: 8]);
      end
      taps = param_data_i[(32'(b3_q) % tw_isa_pkg::TapStride)*Bo*8 +: Bo*8];
      if (wr_valid_q && {1'b0, wr_dst_q} == tw_isa_pkg::SrcAcc && wr_at_q == dst3_q) c_full = wr_row_q;
      else if (wr1_valid_q && {1'b0, wr1_dst_q} == tw_isa_pkg::SrcAcc && wr1_at_q == dst3_q) c_full = wr1_row;
      else c_full = acc_rdata_i[0 +: E*32];
    end
  end

  always_comb begin
    a_full = 'x;
    b_full = 'x;
    if (valid_q[3]) begin
      if (simple3 && fwd_a0) a_full = wr_row_q;
      else if (simple3 && fwd_a1) a_full = wr1_row;
      else if ({1'b0, ctl3_q.a} == tw_isa_pkg::SrcAcc) a_full = acc_rdata_i[0 +: E*32];
      else begin
        for (int unsigned e = 0; e < E; e++) a_full[e*32 +: 32] = {{24{a_bytes[e*8+7]}}, a_bytes[e*8 +: 8]};
      end
      if (simple3 && fwd_b0) b_full = wr_row_q;
      else if (simple3 && fwd_b1) b_full = wr1_row;
      else if (ctl3_q.b == tw_isa_pkg::SrcAcc) b_full = acc_rdata_i[E*32 +: E*32];
      else if (ctl3_q.b == tw_isa_pkg::SrcParam) begin
        b_full = {tw_cfg_pkg::Batch{p_bias}};
      end else if (ctl3_q.op == tw_isa_pkg::VecClip) b_full = {E{d_hi}};
      else if (ctl3_q.b == tw_isa_pkg::SrcScalar) b_full = {E{d_scalar}};
      else begin
        for (int unsigned e = 0; e < E; e++) b_full[e*32 +: 32] = {{24{b_bytes[e*8+7]}}, b_bytes[e*8 +: 8]};
      end
    end
  end

  function automatic logic [8:0] less_zero(input logic [7:0] value, input logic [7:0] zero);
    less_zero = {value[7], value} - {zero[7], zero};
  endfunction

  // The slice of the operands that a pass is of, and the differences that a multiply-accumulate multiplies.
  localparam int unsigned LanesMax = LanesV > LanesR ? LanesV : LanesR;
  // Channels of a deep slice: all of a block's, or a part.
  localparam int unsigned ChannelsR = LanesR < Bo ? LanesR : Bo;
  logic [LanesMax*32-1:0]  a_part, b_part;
  logic [LanesV*32-1:0]    c_part;
  logic [LanesV*9-1:0]     da_part, db_part;
  logic [ChannelsR*32-1:0] multiplier_part;
  logic [ChannelsR*8-1:0]  shift_part;
  int unsigned             slice_v, slice_r, first_channel;
  assign slice_v = SlicesV == 1 ? 0 : 32'(tag3_q.slice);
  assign slice_r = SlicesR == 1 ? 0 : 32'(tag3_q.slice);
  always_comb begin
    a_part = 'x;
    b_part = 'x;
    c_part = 'x;
    da_part = 'x;
    db_part = 'x;
    multiplier_part = 'x;
    shift_part = 'x;
    first_channel = 0;
    if (simple3) begin
      a_part[LanesV*32-1:0] = a_full[slice_v*LanesV*32 +: LanesV*32];
      b_part[LanesV*32-1:0] = b_full[slice_v*LanesV*32 +: LanesV*32];
      c_part = c_full[slice_v*LanesV*32 +: LanesV*32];
      // Of a row of bytes and one of taps.
      for (int unsigned l = 0; l < LanesV; l++) begin
        da_part[l*9 +: 9] = less_zero(mac_row[(slice_v*LanesV + l)*8 +: 8], d_za);
        db_part[l*9 +: 9] = less_zero(taps[(slice_v*LanesV + l) % Bo * 8 +: 8], d_zb);
      end
    end else if (valid_q[3]) begin
      a_part[LanesR*32-1:0] = a_full[slice_r*LanesR*32 +: LanesR*32];
      b_part[LanesR*32-1:0] = b_full[slice_r*LanesR*32 +: LanesR*32];
      // The parameters of its channels.
      if (LanesR < Bo) first_channel = (slice_r*LanesR) % Bo;
      multiplier_part = p_multiplier[first_channel*32 +: ChannelsR*32];
      shift_part = p_shift[first_channel*8 +: ChannelsR*8];
    end
  end

  // Operands before the lanes. Behind a register they have missed the row that was finished as they came, which only a row's
  // first slice can.
  logic                    lane_valid, lane_simple, lane_subtract, row_done;
  ctl_t                    lane_ctl;
  tag_t                    lane_tag;
  logic [IndexW-1:0]       lane_dst;
  logic [LanesV*32-1:0]    sa, sb, sc;
  logic [LanesV*9-1:0]     da, db;
  logic [LanesR*32-1:0]    deep_a, deep_b;
  logic [ChannelsR*32-1:0] deep_multiplier;
  logic [ChannelsR*8-1:0]  deep_shift;
  if (tw_cfg_pkg::VectorStages == 0) begin : gen_operands
    assign lane_valid      = valid_q[3];
    assign lane_ctl        = ctl3_q;
    assign lane_tag        = tag3_q;
    assign lane_subtract   = ctl3_q.op != tw_isa_pkg::VecAdd;
    assign lane_dst        = dst3_q;
    assign sa              = a_part[LanesV*32-1:0];
    assign sb              = b_part[LanesV*32-1:0];
    assign sc              = c_part;
    assign da              = da_part;
    assign db              = db_part;
    assign deep_a          = a_part[LanesR*32-1:0];
    assign deep_b          = b_part[LanesR*32-1:0];
    assign deep_multiplier = multiplier_part;
    assign deep_shift      = shift_part;
  end else begin : gen_registered_operands
    logic                    lane_valid_q, subtract_q;
    ctl_t                    ctl_q;
    tag_t                    tag_q;
    logic [IndexW-1:0]       dst_q;
    logic [LanesMax*32-1:0]  a_q, b_q;
    logic [LanesV*32-1:0]    c_q;
    logic [LanesV*9-1:0]     da_q, db_q;
    logic                    missed_a_q, missed_b_q, missed_c_q;
    logic [ChannelsR*32-1:0] multiplier_q;
    logic [ChannelsR*8-1:0]  shift_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) lane_valid_q <= 1'b0;
      else lane_valid_q <= valid_q[3];
    end
    always_ff @(posedge clk_i) begin
      if (valid_q[3]) begin
        ctl_q      <= ctl3_q;
        tag_q      <= tag3_q;
        subtract_q <= ctl3_q.op != tw_isa_pkg::VecAdd;
        dst_q      <= dst3_q;
        a_q        <= a_part;
        b_q        <= b_part;
      end
      missed_a_q <= simple3 && row_done && lane_ctl.dst == ctl3_q.a && lane_dst == a3_q;
      missed_b_q <= simple3 && row_done && {1'b0, lane_ctl.dst} == ctl3_q.b && lane_dst == b3_q;
      missed_c_q <= simple3 && row_done && {1'b0, lane_ctl.dst} == tw_isa_pkg::SrcAcc && lane_dst == dst3_q;
      if (simple3 && mac3) begin
        c_q  <= c_part;
        da_q <= da_part;
        db_q <= db_part;
      end
      if (param3) begin
        multiplier_q <= multiplier_part;
        shift_q      <= shift_part;
      end
    end
    assign lane_valid      = lane_valid_q;
    assign lane_ctl        = ctl_q;
    assign lane_tag        = tag_q;
    assign lane_subtract   = subtract_q;
    assign lane_dst        = dst_q;
    assign deep_a          = a_q[LanesR*32-1:0];
    assign deep_b          = b_q[LanesR*32-1:0];
    assign deep_multiplier = multiplier_q;
    assign deep_shift      = shift_q;
    // The taps of a multiply-accumulate are nobody's result.
    assign db              = db_q;
    always_comb begin
      sa = a_q[LanesV*32-1:0];
      sb = b_q[LanesV*32-1:0];
      sc = c_q;
      da = da_q;
      if (missed_a_q) begin
        sa = wr_row_q[LanesV*32-1:0];
        for (int unsigned l = 0; l < LanesV; l++) da[l*9 +: 9] = less_zero(wr_row_q[l*32 +: 8], d_za);
      end
      if (missed_b_q) sb = wr_row_q[LanesV*32-1:0];
      if (missed_c_q) sc = wr_row_q[LanesV*32-1:0];
    end
  end
  assign lane_simple = lane_valid && !is_deep(lane_ctl.op);
  logic unused_sources;
  assign unused_sources = ^{lane_ctl.a, lane_ctl.b};

  logic [LanesV*32-1:0] sr, sl, sm;
  logic no_range;
  assign no_range = $signed(d_hi) < $signed(d_lo);
  for (genvar l = 0; l < LanesV; l++) begin : gen_vector_lane
    logic [63:0] table_word;
    logic [7:0]  looked_up;
    always_comb begin
      table_word = 'x;
      looked_up = 'x;
      if (tw_cfg_pkg::VectorLut != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecLut) begin
        table_word = table_q[sa[l*32 + 3 +: $clog2(TableWords)]];
        looked_up = table_word[32'(sa[l*32 +: 3])*8 +: 8];
      end
    end
    assign sl[l*32 +: 32] = {{24{looked_up[7]}}, looked_up};
    tw_vector_lane u_lane (
      .en_i(lane_simple), .op_i(lane_ctl.op), .subtract_i(lane_subtract),
      .narrow_i({1'b0, lane_ctl.dst} != tw_isa_pkg::SrcAcc), .a_i(sa[l*32 +: 32]), .b_i(sb[l*32 +: 32]), .lo_i(d_lo),
      .none_i(no_range), .old_i(sc[l*32 +: 32]), .da_i(da[l*9 +: 9]), .db_i(db[l*9 +: 9]), .result_o(sr[l*32 +: 32]),
      .mac_o(sm[l*32 +: 32])
    );
  end
  function automatic logic [31:0] saturated(input logic [31:0] value);
    saturated = value;
    if (value[31:7] != {25{value[31]}}) saturated = {{25{value[31]}}, {7{!value[31]}}};
  endfunction
  always_comb begin
    simple_part = 'x;
    if (lane_simple) simple_part = sr;
    // A table's bytes fit everywhere; a multiply-accumulate is acc's. Both come last.
    if (tw_cfg_pkg::VectorLut != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecLut) simple_part = sl;
    if (tw_cfg_pkg::VectorMac != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecMac) simple_part = sm;
  end

  // Deep operations.
  logic              deep_final, deep_busy, deep_row_last, deep_last;
  logic [1:0]        deep_dst;
  logic [IndexW-1:0] deep_at;
  logic [3:0]        deep_push;
  tw_vector_deep #(.SliceW(SliceW), .Channels(ChannelsR)) u_deep (
    .clk_i, .rst_ni, .valid_i(lane_valid && is_deep(lane_ctl.op)), .op_i(lane_ctl.op), .single_i(lane_ctl.single),
    .dst_i(lane_ctl.dst), .at_i(lane_dst), .last_i(lane_tag.last), .row_last_i(lane_tag.row_last), .slice_i(lane_tag.slice),
    .second_i(lane_tag.second), .push_i(lane_tag.push), .a_i(deep_a), .b_i(deep_b), .multiplier_i(deep_multiplier),
    .shift_i(deep_shift), .descriptor_i(d), .busy_o(deep_busy), .valid_o(deep_final), .result_o(deep_result), .slice_o(deep_slice), .dst_o(deep_dst),
    .at_o(deep_at), .last_o(deep_last), .row_last_o(deep_row_last), .push_o(deep_push)
  );

  always_comb begin
    deep_part = 'x;
    if (deep_final) deep_part = deep_result;
    if (deep_final && {1'b0, deep_dst} != tw_isa_pkg::SrcAcc) begin
      for (int unsigned l = 0; l < LanesR; l++) deep_part[l*32 +: 32] = saturated(deep_result[l*32 +: 32]);
    end
  end

  assign row_done = (lane_simple && lane_tag.row_last) || (deep_final && deep_row_last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_valid_q  <= 1'b0;
      wr1_valid_q <= 1'b0;
    end else begin
      wr_valid_q  <= row_done;
      wr1_valid_q <= wr_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    // A row grows in place, by slices: what an element takes is the same in every slice, whose turn it is is not.
    for (int unsigned e = 0; e < E; e++) begin
      if (deep_final ? SlicesR == 1 || 32'(deep_slice) == e / LanesR : lane_simple && (SlicesV == 1 || 32'(lane_tag.slice) == e / LanesV)) begin
        wr_row_q[e*32 +: 32] <= deep_final ? deep_part[e % LanesR * 32 +: 32] : simple_part[e % LanesV * 32 +: 32];
      end
    end
    if (row_done) begin
      wr_dst_q  <= deep_final ? deep_dst : lane_ctl.dst;
      wr_at_q   <= deep_final ? deep_at : lane_dst;
      wr_last_q <= deep_final ? deep_last : lane_tag.last;
      wr_push_q <= deep_final ? deep_push : lane_tag.push;
    end
    if (wr_valid_q) begin
      wr1_dst_q <= wr_dst_q;
      wr1_at_q  <= wr_at_q;
    end
  end

  // Where a row has more slices, the one that is wanted is not overwritten yet.
  if (SlicesV <= 1 + 32'(tw_cfg_pkg::VectorStages != 0)) begin : gen_wr1
    logic [E*32-1:0] wr1_row_q;
    always_ff @(posedge clk_i) begin
      if (wr_valid_q) wr1_row_q <= wr_row_q;
    end
    assign wr1_row = wr1_row_q;
  end else begin : gen_no_wr1
    assign wr1_row = wr_row_q;
  end

  assign acc_we_o  = wr_valid_q && {1'b0, wr_dst_q} == tw_isa_pkg::SrcAcc;
  assign out_we_o  = wr_valid_q && {1'b0, wr_dst_q} == tw_isa_pkg::SrcOut;
  assign inp_we_o  = Inp && wr_valid_q && {1'b0, wr_dst_q} == tw_isa_pkg::SrcInp;
  assign waddr_o   = wr_at_q;
  assign wdata32_o = wr_row_q;
  always_comb begin
    for (int unsigned e = 0; e < E; e++) wdata8_o[e*8 +: 8] = wr_row_q[e*32 +: 8];
  end

  assign retire_o      = wr_valid_q && wr_last_q;
  assign retire_push_o = wr_push_q;
  assign busy_o        = state_q != StIdle || (|valid_q) || lane_valid || deep_busy || wr_valid_q;
  assign working_o     = issue;

endmodule
