`include "tw_assert.svh"
`include "tw_fields.svh"

// Vector unit: element-wise operations on rows of batch x block_out elements.
//
// Simple operations run on the vector lanes, with forwarding between rows. Deep operations (requantize, multiply,
// quantized add) run on the requantize lanes, without forwarding. A row wider than its lanes is split into slices,
// one pass each.
//
//   stage  0        issue: the micro-op memory is read
//          1        index: micro-op plus loop offsets, range check
//          2        operand read
//          3        operands (registered where VectorStages is not 0); simple operations compute
//          4        simple operations write
//          3 to 7   deep operations scale
//          8        deep operations assemble the row
//          9        deep operations write
//
// A quantized add enters the requantize lanes three times: operand a, operand b, and their sum five cycles after a.
// Serial lanes scale for PassCycles instead of five cycles, and passes are issued that far apart. Registers in front
// of the lanes (VectorStages) add to the number of every later stage.
//
// Signals carry their stage as a number: `ctl2_q` is the register of `ctl` that stage 2 reads.
module tw_vector (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // Head of the instruction queue
  input  logic                               insn_valid_i,
  input  logic [tw_cfg_pkg::VectorBodyW-1:0] insn_i,
  input  logic [3:0]                         insn_push_i,
  output logic                               insn_free_o,

  // Micro-op memory
  output logic                                    uop_re_o,
  output logic [tw_cfg_pkg::VuopW-1:0]            uop_addr_o,
  input  logic [tw_cfg_pkg::VuopEntryBytes*8-1:0] uop_data_i,

  // Operand reads: bit or slot 0 is operand a, bit or slot 1 is operand b
  output logic [1:0]                                              acc_re_o,
  output logic [2*tw_cfg_pkg::AccW-1:0]                           acc_raddr_o,
  input  logic [2*tw_cfg_pkg::AccEntryBytes*8-1:0]                acc_rdata_i,
  output logic [1:0]                                              out_re_o,
  output logic [2*$clog2(tw_cfg_pkg::OutDepth)-1:0]               out_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0]                out_rdata_i,
  output logic [1:0]                                              inp_re_o,
  output logic [2*tw_cfg_pkg::InpW-1:0]                           inp_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0]                inp_rdata_i,
  output logic                                                    param_re_o,
  output logic [tw_cfg_pkg::DescW-1:0]                            param_addr_o,
  input  logic [tw_isa_pkg::ParamRows*tw_cfg_pkg::BlockOut*8-1:0] param_data_i,

  // Row writes
  output logic                                   acc_we_o,
  output logic                                   out_we_o,
  output logic                                   inp_we_o,
  output logic [tw_cfg_pkg::VecW-1:0]            waddr_o,
  output logic [tw_cfg_pkg::AccEntryBytes*8-1:0] wdata32_o,
  output logic [tw_cfg_pkg::OutEntryBytes*8-1:0] wdata8_o,

  // Retirement and state
  output logic       retire_o,
  output logic [3:0] retire_push_o,
  output logic       busy_o,
  output logic       working_o,

  // Traps
  output logic        trap_o,
  output logic [31:0] trap_ordinal_o,
  // Ordinal of the instruction that reads its operands in this cycle
  output logic [31:0] read_ordinal_o
);

  // Lanes, and slices of a row, of simple and of deep operations
  localparam int unsigned Elements = tw_cfg_pkg::RowElements;
  localparam int unsigned SimpleLanes = tw_cfg_pkg::VectorLanes;
  localparam int unsigned SimpleSlices = Elements / SimpleLanes;
  localparam int unsigned DeepLanes = tw_cfg_pkg::RequantLanes;
  localparam int unsigned DeepSlices = Elements / DeepLanes;
  localparam int unsigned MostSlices = SimpleSlices > DeepSlices ? SimpleSlices : DeepSlices;
  localparam int unsigned SliceW = MostSlices > 1 ? $clog2(MostSlices) : 1;
  // An index of the micro-op, an offset of the loops, and their sum
  localparam int unsigned IndexW = tw_cfg_pkg::VecW;
  localparam int unsigned OffW = IndexW + 1;
  localparam int unsigned SumW = IndexW + 2;
  localparam int unsigned BodyW = tw_cfg_pkg::VectorBodyW;
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::OutDepth);
  localparam int unsigned BlockOut = tw_cfg_pkg::BlockOut;
  // Cycles from an instruction's last issue until the pipeline holds nothing of it.
  localparam logic [4:0]  DrainCycles = 5'd16;
  localparam int unsigned DescEntries = tw_cfg_pkg::DescriptorEntries;
  localparam int unsigned DescEntryBits = tw_isa_pkg::ParamRows * BlockOut * 8;
  // A lookup table is loaded in words of eight bytes, from the first eight rows of param entries.
  localparam int unsigned TableWords = tw_isa_pkg::TableBytes / 8;
  localparam int unsigned EntryWords = BlockOut < TableWords ? BlockOut : TableWords;
  localparam int unsigned DescCountW = $clog2((DescEntries > TableWords ? DescEntries : TableWords) + 2);

  ///////////
  // Types //
  ///////////

  typedef struct packed {
    logic [4:0] op;
    logic       single;
    logic [1:0] dst;
    logic [1:0] a;
    logic [2:0] b;
  } ctl_t;

  typedef struct packed {
    logic              last;
    logic              row_last;
    logic [SliceW-1:0] slice;
    // The pass is operand b of a quantized add.
    logic              second;
    logic [3:0]        push;
  } tag_t;

  ///////////////////////
  // Instruction start //
  ///////////////////////

  // An instruction waits until the pipeline is drained, loads its descriptor or table, and runs. Simple operations
  // without a descriptor start at once.
  typedef enum logic [1:0] {StIdle, StDrain, StDesc, StRun} state_e;
  state_e                               state_q, state_d;
  logic [BodyW-1:0]                     insn_q;
  logic [3:0]                           insn_push_q;
  logic [31:0]                          ordinal_q;
  logic [1:0]                           recent_starts_q;
  logic                                 insn_deep_q, last_deep_q;
  logic [4:0]                           drain_count_q, drain_count_d;
  logic [DescCountW-1:0]                desc_count_q;
  logic [DescEntries*DescEntryBits-1:0] descriptor_q;
  logic                                 head_deep, head_needs_desc, direct, start, launch, desc_out_of_range;
  logic                                 issue, step, walk_valid, walk_last, walk_range;
  logic [SliceW-1:0]                    slice_q;
  logic [1:0]                           phase_q;
  logic                                 last_pass, pass_first, pass_last;
  logic [3*OffW-1:0]                    walk_offsets;
  logic                                 insn_needs_desc, insn_is_lut;
  logic [DescCountW-1:0]                desc_last;

  function automatic logic is_deep(input logic [4:0] op);
    is_deep = tw_isa_pkg::VecsDeep[op];
  endfunction

  function automatic logic needs_desc(input logic [4:0] op, input logic [2:0] b);
    needs_desc = tw_isa_pkg::VecsWithConstants[op] || b == tw_isa_pkg::SrcScalar;
  endfunction

  assign head_deep = is_deep(`TW_FIELD(vector, op, insn_i));
  assign head_needs_desc = needs_desc(`TW_FIELD(vector, op, insn_i), `TW_FIELD(vector, b, insn_i));
  assign insn_needs_desc = needs_desc(`TW_FIELD(vector, op, insn_q), `TW_FIELD(vector, b, insn_q));
  assign direct = !head_deep && !head_needs_desc && !last_deep_q;
  assign insn_free_o = state_q == StIdle || (state_q == StRun && walk_valid && last_pass && walk_last);
  assign start = insn_valid_i && !stop_i && insn_free_o;
  assign insn_is_lut = tw_cfg_pkg::VectorLut != 0 && `TW_FIELD(vector, op, insn_q) == tw_isa_pkg::VecLut;
  assign desc_last = insn_is_lut ? DescCountW'(TableWords) : DescCountW'(DescEntries);
  assign desc_out_of_range = 32'(`TW_FIELD(vector, descriptor, insn_q)) + (insn_is_lut ? tw_cfg_pkg::TableEntries : DescEntries) >
                      tw_cfg_pkg::ParamDepth;
  assign launch = (start && direct) ||
                  (state_q == StDrain && drain_count_q == '0 && !insn_needs_desc && !stop_i) ||
                  (state_q == StDesc && desc_count_q == desc_last && !stop_i);

  always_comb begin
    state_d = state_q;
    if (launch) state_d = StRun;
    else if (start) state_d = StDrain;
    else if (stop_i) state_d = StIdle;
    else if (state_q == StDrain && drain_count_q == '0) state_d = StDesc;
    else if (state_q == StRun && step && walk_last) state_d = StIdle;
  end

  always_comb begin
    drain_count_d = drain_count_q;
    if (issue) drain_count_d = DrainCycles;
    else if (drain_count_q != '0) drain_count_d = drain_count_q - 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q         <= StIdle;
      ordinal_q       <= '1;
      recent_starts_q <= '0;
      last_deep_q     <= 1'b0;
      drain_count_q   <= '0;
    end else begin
      state_q         <= state_d;
      recent_starts_q <= {recent_starts_q[0], start};
      drain_count_q   <= drain_count_d;
      if (start) begin
        ordinal_q   <= ordinal_q + 1'b1;
        last_deep_q <= head_deep;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (start) begin
      insn_q      <= insn_i;
      insn_push_q <= insn_push_i;
      insn_deep_q <= head_deep;
    end
  end

  // The descriptor: each entry is stored in the cycle after its read.
  always_ff @(posedge clk_i) begin
    if (state_q != StDesc) desc_count_q <= '0;
    else desc_count_q <= desc_count_q + 1'b1;
    for (int unsigned k = 0; k < DescEntries; k++) begin
      if (state_q == StDesc && !insn_is_lut && desc_count_q == DescCountW'(k + 1)) begin
        descriptor_q[k*DescEntryBits +: DescEntryBits] <= param_data_i;
      end
    end
  end

  // The lookup table: each word is stored in the cycle after its entry's read.
  logic [63:0]           table_q [TableWords];
  logic [DescCountW-1:0] table_word_index;
  assign table_word_index = desc_count_q - 1'b1;
  always_ff @(posedge clk_i) begin
    if (state_q == StDesc && insn_is_lut && desc_count_q != '0) begin
      table_q[table_word_index[$clog2(TableWords)-1:0]] <= param_data_i[(32'(table_word_index) % EntryWords) * 64 +: 64];
    end
  end

  // Descriptor fields
  logic [tw_isa_pkg::DescriptorBytes*8-1:0] desc;
  logic [31:0]                              desc_scalar, desc_lo, desc_hi;
  logic [7:0]                               desc_zero_a, desc_zero_b;
  assign desc        = descriptor_q[tw_isa_pkg::DescriptorBytes*8-1:0];
  assign desc_scalar = desc[tw_isa_pkg::DescScalarLsb +: 32];
  assign desc_lo     = desc[tw_isa_pkg::DescLoLsb +: 32];
  assign desc_hi     = desc[tw_isa_pkg::DescHiLsb +: 32];
  assign desc_zero_a = desc[tw_isa_pkg::DescZeroALsb +: 8];
  assign desc_zero_b = desc[tw_isa_pkg::DescZeroBLsb +: 8];

  ////////////////////
  // Stage 0: issue //
  ////////////////////

  // A row takes one pass for each slice. A quantized add takes three: phase 0 and 1 issue its operands, phase 2 leaves
  // the lanes free for the sum.
  ctl_t ctl;
  assign ctl.op     = `TW_FIELD(vector, op, insn_q);
  assign ctl.single = `TW_FIELD(vector, mode, insn_q);
  assign ctl.dst    = `TW_FIELD(vector, dst, insn_q);
  assign ctl.a      = `TW_FIELD(vector, a, insn_q);
  assign ctl.b      = `TW_FIELD(vector, b, insn_q);

  logic insn_is_qadd, slice_last;
  assign insn_is_qadd = ctl.op == tw_isa_pkg::VecQadd;
  assign slice_last   = slice_q == (insn_deep_q ? SliceW'(DeepSlices - 1) : SliceW'(SimpleSlices - 1));
  assign last_pass    = slice_last && (!insn_is_qadd || phase_q == 2'd2) && pass_last;
  assign issue        = state_q == StRun && walk_valid && !stop_i;
  assign step         = issue && last_pass;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || launch) begin
      slice_q <= '0;
      phase_q <= '0;
    end else if (issue && pass_last) begin
      if (insn_is_qadd && phase_q != 2'd2) begin
        phase_q <= phase_q + 1'b1;
      end else begin
        phase_q <= '0;
        slice_q <= slice_last ? '0 : slice_q + 1'b1;
      end
    end
  end

  // A pass takes one cycle, or PassCycles on serial requantize lanes.
  if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial
    localparam int unsigned CountW = $clog2(tw_cfg_pkg::PassCycles);
    logic [CountW-1:0] cycle_q;
    assign pass_first = !insn_deep_q || cycle_q == '0;
    assign pass_last  = !insn_deep_q || cycle_q == CountW'(tw_cfg_pkg::PassCycles - 1);
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
  // The walk is set up at the start and waits for the launch. Simulators skip the fields in all other cycles.
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
    .UopW    (tw_cfg_pkg::VuopW),
    .UopDepth(tw_cfg_pkg::VectorUopDepth),
    .LoopW   (tw_cfg_pkg::LoopW),
    .IndexW  (IndexW),
    .Loops   (tw_cfg_pkg::Loops)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .start_i    (start),
    .uop_i      (`TW_FIELD(vector, uop, insn_i)),
    .uops_i     (`TW_FIELD(vector, uops, insn_i)),
    .counts_i   (counts),
    .bases_i    (bases),
    .steps_i    (steps),
    .step_i     (step),
    .valid_o    (walk_valid),
    .last_o     (walk_last),
    .uop_range_o(walk_range),
    .uop_o      (uop_addr_o),
    .offsets_o  (walk_offsets)
  );
  assign uop_re_o = issue;

  ////////////////////////////////////////
  // Stages 1 to 3: index, operand read //
  ////////////////////////////////////////

  logic [3:1]        valid_q;
  ctl_t              ctl1_q, ctl2_q, ctl3_q;
  tag_t              tag0, tag1_q, tag2_q, tag3_q;
  logic              uop_range1_q, bad2_q;
  logic [31:0]       ordinal2;
  logic [3*OffW-1:0] offsets1_q;
  logic [SumW-1:0]   dst_at2_q, a_at2_q, b_at2_q;
  logic [IndexW-1:0] dst_at3_q, a_at3_q, b_at3_q;
  logic [SumW-1:0]   dst_at1, a_at1, b_at1;
  logic              bad1, uop_trap, desc_trap;

  assign tag0.last     = walk_last && slice_last && (!insn_is_qadd || phase_q == 2'd1);
  assign tag0.row_last = slice_last;
  assign tag0.slice    = slice_q;
  assign tag0.second   = phase_q != 2'd0;
  assign tag0.push     = insn_push_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else begin
      valid_q <= {valid_q[2] && !uop_trap && !stop_i, valid_q[1] && !uop_trap && !stop_i,
                  issue && pass_first && !(insn_is_qadd && phase_q == 2'd2) && !uop_trap};
    end
  end

  always_ff @(posedge clk_i) begin
    if (issue) begin
      ctl1_q       <= ctl;
      tag1_q       <= tag0;
      uop_range1_q <= walk_range;
      offsets1_q   <= walk_offsets;
    end
    if (valid_q[1]) begin
      ctl2_q    <= ctl1_q;
      tag2_q    <= tag1_q;
      bad2_q    <= bad1;
      dst_at2_q <= dst_at1;
      a_at2_q   <= a_at1;
      b_at2_q   <= b_at1;
    end
    if (valid_q[2]) begin
      ctl3_q    <= ctl2_q;
      tag3_q    <= tag2_q;
      dst_at3_q <= dst_at2_q[IndexW-1:0];
      a_at3_q   <= a_at2_q[IndexW-1:0];
      b_at3_q   <= b_at2_q[IndexW-1:0];
    end
  end

  // Whether an index is outside its memory. In param it counts entries, or for a multiply-accumulate (mac_taps) rows
  // of entries.
  function automatic logic out_of_range(input logic [SumW-1:0] index, input logic [2:0] src, input logic mac_taps);
    unique case (src)
      tw_isa_pkg::SrcAcc:   out_of_range = 32'(index) >= tw_cfg_pkg::AccDepth;
      tw_isa_pkg::SrcOut:   out_of_range = 32'(index) >= tw_cfg_pkg::OutDepth;
      tw_isa_pkg::SrcInp:   out_of_range = 32'(index) >= tw_cfg_pkg::InpDepth;
      tw_isa_pkg::SrcParam: out_of_range = mac_taps ? 32'(index) / tw_isa_pkg::TapStride >= tw_cfg_pkg::ParamDepth ||
                                                       32'(index) % tw_isa_pkg::TapStride >= tw_isa_pkg::ParamRows
                                                     : 32'(index) >= tw_cfg_pkg::ParamDepth;
      default:              out_of_range = 1'b0;
    endcase
  endfunction

  logic mac1, mac2, mac3;
  assign mac1 = tw_cfg_pkg::VectorMac != 0 && ctl1_q.op == tw_isa_pkg::VecMac;
  assign mac2 = tw_cfg_pkg::VectorMac != 0 && ctl2_q.op == tw_isa_pkg::VecMac;
  assign mac3 = tw_cfg_pkg::VectorMac != 0 && ctl3_q.op == tw_isa_pkg::VecMac;
  always_comb begin
    dst_at1 = 'x;
    a_at1 = 'x;
    b_at1 = 'x;
    bad1 = 'x;
    if (valid_q[1]) begin
      dst_at1 = SumW'(uop_data_i[0 +: IndexW]) + SumW'(offsets1_q[0 +: OffW]);
      a_at1 = SumW'(uop_data_i[IndexW +: IndexW]) + SumW'(offsets1_q[OffW +: OffW]);
      b_at1 = SumW'(uop_data_i[2*IndexW +: IndexW]) + SumW'(offsets1_q[2*OffW +: OffW]);
      bad1 = uop_range1_q || out_of_range(dst_at1, {1'b0, ctl1_q.dst}, 1'b0) ||
             out_of_range(a_at1, {1'b0, ctl1_q.a}, 1'b0) || out_of_range(b_at1, ctl1_q.b, mac1);
    end
  end
  assign uop_trap       = valid_q[2] && bad2_q && !stop_i;
  assign desc_trap      = state_q == StDesc && desc_count_q == '0 && desc_out_of_range && !stop_i;
  assign trap_o         = uop_trap || desc_trap;
  assign trap_ordinal_o = uop_trap ? ordinal2 : ordinal_q;
  // The newest ordinal, less the instructions that started after the one in stage 2.
  assign ordinal2 = ordinal_q - 32'(recent_starts_q[0]) - 32'(recent_starts_q[1]);
  assign read_ordinal_o = ordinal2;

  logic read2;
  assign read2 = valid_q[2] && !bad2_q && !stop_i;
  assign acc_re_o = {read2 && ctl2_q.b == tw_isa_pkg::SrcAcc, read2 && ({1'b0, ctl2_q.a} == tw_isa_pkg::SrcAcc || mac2)};
  assign out_re_o = {read2 && ctl2_q.b == tw_isa_pkg::SrcOut, read2 && {1'b0, ctl2_q.a} == tw_isa_pkg::SrcOut};
  // The vector unit reaches inp only where inp rows have the size of out rows; the decoder checks that.
  localparam bit ReachesInp = tw_cfg_pkg::VectorReachesInp != 0;
  assign inp_re_o = {ReachesInp && read2 && ctl2_q.b == tw_isa_pkg::SrcInp,
                     ReachesInp && read2 && {1'b0, ctl2_q.a} == tw_isa_pkg::SrcInp};
  // A multiply-accumulate reads its destination through operand a's acc port, which is free because its a is int8.
  assign acc_raddr_o = {tw_cfg_pkg::AccW'(b_at2_q), tw_cfg_pkg::AccW'(mac2 ? dst_at2_q : a_at2_q)};
  assign out_raddr_o = {OutW'(b_at2_q), OutW'(a_at2_q)};
  assign inp_raddr_o = {tw_cfg_pkg::InpW'(b_at2_q), tw_cfg_pkg::InpW'(a_at2_q)};
  assign param_re_o = (read2 && ctl2_q.b == tw_isa_pkg::SrcParam) || (state_q == StDesc && !stop_i);
  logic [tw_cfg_pkg::DescW-1:0] desc_entry, b_entry;
  assign desc_entry = tw_cfg_pkg::DescW'(insn_is_lut ? 32'(desc_count_q) / EntryWords : 32'(desc_count_q));
  assign b_entry = tw_cfg_pkg::DescW'(mac2 ? b_at2_q >> $clog2(tw_isa_pkg::TapStride) : b_at2_q);
  assign param_addr_o = state_q == StDesc ? `TW_FIELD(vector, descriptor, insn_q) + desc_entry : b_entry;

  ////////////////////////////////////////
  // Stage 3: operands, with forwarding //
  ////////////////////////////////////////

  // The row being written (`write_`) and the one written in the cycle before (`written_`). Elements have 32 bits,
  // already saturated for an int8 destination, so that they can be forwarded.
  logic                      write_valid_q, written_valid_q, write_last_q;
  logic [1:0]                write_dst_q, written_dst_q;
  logic [3:0]                write_push_q;
  logic [IndexW-1:0]         write_at_q, written_at_q;
  logic [Elements*32-1:0]    write_row_q, written_row;
  logic [SimpleLanes*32-1:0] simple_part;
  logic [DeepLanes*32-1:0]   deep_result, deep_part;
  logic [SliceW-1:0]         deep_slice;

  logic                   simple3, forward_a_write, forward_a_written, forward_b_write, forward_b_written;
  logic [Elements*32-1:0] a_row, b_row, old_row;
  logic [Elements*8-1:0]  a_bytes, b_bytes;
  assign simple3 = valid_q[3] && !is_deep(ctl3_q.op);
  assign forward_a_write = write_valid_q && write_dst_q == ctl3_q.a && write_at_q == a_at3_q;
  assign forward_a_written = written_valid_q && written_dst_q == ctl3_q.a && written_at_q == a_at3_q;
  assign forward_b_write = write_valid_q && {1'b0, write_dst_q} == ctl3_q.b && write_at_q == b_at3_q;
  assign forward_b_written = written_valid_q && {1'b0, written_dst_q} == ctl3_q.b && written_at_q == b_at3_q;
  assign a_bytes = !ReachesInp || {1'b0, ctl3_q.a} == tw_isa_pkg::SrcOut ? out_rdata_i[0 +: Elements*8]
                                                                         : inp_rdata_i[0 +: Elements*8];
  assign b_bytes = !ReachesInp || ctl3_q.b == tw_isa_pkg::SrcOut ? out_rdata_i[Elements*8 +: Elements*8]
                                                                 : inp_rdata_i[Elements*8 +: Elements*8];

  // Bias, multiplier and shift of each channel, from the param entry that was read
  logic [BlockOut*32-1:0] param_bias, param_multiplier;
  logic [BlockOut*8-1:0]  param_shift;
  logic                   param3;
  assign param3 = valid_q[3] && ctl3_q.b == tw_isa_pkg::SrcParam;
  always_comb begin
    param_bias = 'x;
    param_multiplier = 'x;
    param_shift = 'x;
    if (param3) begin
      for (int unsigned c = 0; c < BlockOut; c++) begin
        for (int unsigned k = 0; k < 4; k++) begin
          param_bias[c*32 + k*8 +: 8] = param_data_i[((tw_isa_pkg::ParamBiasRow + k)*BlockOut + c)*8 +: 8];
          param_multiplier[c*32 + k*8 +: 8] = param_data_i[((tw_isa_pkg::ParamMultiplierRow + k)*BlockOut + c)*8 +: 8];
        end
        param_shift[c*8 +: 8] = param_data_i[(tw_isa_pkg::ParamShiftRow*BlockOut + c)*8 +: 8];
      end
    end
  end

  // Operands of a multiply-accumulate: a row of bytes, a row of taps, and the destination's old value
  logic [BlockOut*8-1:0] mac_taps;
  logic [Elements*8-1:0] mac_bytes;
  always_comb begin
    mac_taps = 'x;
    mac_bytes = 'x;
    old_row = 'x;
    if (simple3 && mac3) begin
      for (int unsigned e = 0; e < Elements; e++) begin
        mac_bytes[e*8 +: 8] = forward_a_write   ? write_row_q[e*32 +: 8] :
                              forward_a_written ? written_row[e*32 +: 8] : a_bytes[e*8 +: 8];
      end
      mac_taps = param_data_i[(32'(b_at3_q) % tw_isa_pkg::TapStride)*BlockOut*8 +: BlockOut*8];
      if (write_valid_q && {1'b0, write_dst_q} == tw_isa_pkg::SrcAcc && write_at_q == dst_at3_q) old_row = write_row_q;
      else if (written_valid_q && {1'b0, written_dst_q} == tw_isa_pkg::SrcAcc && written_at_q == dst_at3_q) old_row = written_row;
      else old_row = acc_rdata_i[0 +: Elements*32];
    end
  end

  always_comb begin
    a_row = 'x;
    b_row = 'x;
    if (valid_q[3]) begin
      if (simple3 && forward_a_write) a_row = write_row_q;
      else if (simple3 && forward_a_written) a_row = written_row;
      else if ({1'b0, ctl3_q.a} == tw_isa_pkg::SrcAcc) a_row = acc_rdata_i[0 +: Elements*32];
      else begin
        for (int unsigned e = 0; e < Elements; e++) a_row[e*32 +: 32] = {{24{a_bytes[e*8+7]}}, a_bytes[e*8 +: 8]};
      end
      if (simple3 && forward_b_write) b_row = write_row_q;
      else if (simple3 && forward_b_written) b_row = written_row;
      else if (ctl3_q.b == tw_isa_pkg::SrcAcc) b_row = acc_rdata_i[Elements*32 +: Elements*32];
      else if (ctl3_q.b == tw_isa_pkg::SrcParam) begin
        b_row = {tw_cfg_pkg::Batch{param_bias}};
      end else if (ctl3_q.op == tw_isa_pkg::VecClip) b_row = {Elements{desc_hi}};
      else if (ctl3_q.b == tw_isa_pkg::SrcScalar) b_row = {Elements{desc_scalar}};
      else begin
        for (int unsigned e = 0; e < Elements; e++) b_row[e*32 +: 32] = {{24{b_bytes[e*8+7]}}, b_bytes[e*8 +: 8]};
      end
    end
  end

  function automatic logic [8:0] less_zero(input logic [7:0] value, input logic [7:0] zero);
    less_zero = {value[7], value} - {zero[7], zero};
  endfunction

  // The slice of the operands that a pass works on
  localparam int unsigned MostLanes = SimpleLanes > DeepLanes ? SimpleLanes : DeepLanes;
  // Channels of a deep slice: a whole block, or a part of one
  localparam int unsigned DeepChannels = DeepLanes < BlockOut ? DeepLanes : BlockOut;
  logic [MostLanes*32-1:0]    a_part, b_part;
  logic [SimpleLanes*32-1:0]  old_part;
  logic [SimpleLanes*9-1:0]   mac_a_part, mac_b_part;
  logic [DeepChannels*32-1:0] multiplier_part;
  logic [DeepChannels*8-1:0]  shift_part;
  int unsigned             simple_slice, deep_operand_slice, first_channel;
  assign simple_slice = SimpleSlices == 1 ? 0 : 32'(tag3_q.slice);
  assign deep_operand_slice = DeepSlices == 1 ? 0 : 32'(tag3_q.slice);
  always_comb begin
    a_part = 'x;
    b_part = 'x;
    old_part = 'x;
    mac_a_part = 'x;
    mac_b_part = 'x;
    multiplier_part = 'x;
    shift_part = 'x;
    first_channel = 0;
    if (simple3) begin
      a_part[SimpleLanes*32-1:0] = a_row[simple_slice*SimpleLanes*32 +: SimpleLanes*32];
      b_part[SimpleLanes*32-1:0] = b_row[simple_slice*SimpleLanes*32 +: SimpleLanes*32];
      old_part = old_row[simple_slice*SimpleLanes*32 +: SimpleLanes*32];
      // A multiply-accumulate multiplies the differences from the zero points.
      for (int unsigned l = 0; l < SimpleLanes; l++) begin
        mac_a_part[l*9 +: 9] = less_zero(mac_bytes[(simple_slice*SimpleLanes + l)*8 +: 8], desc_zero_a);
        mac_b_part[l*9 +: 9] = less_zero(mac_taps[(simple_slice*SimpleLanes + l) % BlockOut * 8 +: 8], desc_zero_b);
      end
    end else if (valid_q[3]) begin
      a_part[DeepLanes*32-1:0] = a_row[deep_operand_slice*DeepLanes*32 +: DeepLanes*32];
      b_part[DeepLanes*32-1:0] = b_row[deep_operand_slice*DeepLanes*32 +: DeepLanes*32];
      // The parameters of the slice's channels
      if (DeepLanes < BlockOut) first_channel = (deep_operand_slice*DeepLanes) % BlockOut;
      multiplier_part = param_multiplier[first_channel*32 +: DeepChannels*32];
      shift_part = param_shift[first_channel*8 +: DeepChannels*8];
    end
  end

  ///////////////////
  // Lane operands //
  ///////////////////

  // The operands that enter the lanes. Registered operands miss the row that was finished in the cycle in which they
  // were registered, so they take it here. Only the first slice of a row can miss one.
  logic                       lane_valid, lane_simple, lane_subtract, row_done;
  ctl_t                       lane_ctl;
  tag_t                       lane_tag;
  logic [IndexW-1:0]          lane_dst;
  logic [SimpleLanes*32-1:0]  simple_a, simple_b, simple_old;
  logic [SimpleLanes*9-1:0]   mac_a, mac_b;
  logic [DeepLanes*32-1:0]    deep_a, deep_b;
  logic [DeepChannels*32-1:0] deep_multiplier;
  logic [DeepChannels*8-1:0]  deep_shift;
  if (tw_cfg_pkg::VectorStages == 0) begin : gen_operands
    assign lane_valid      = valid_q[3];
    assign lane_ctl        = ctl3_q;
    assign lane_tag        = tag3_q;
    assign lane_subtract   = ctl3_q.op != tw_isa_pkg::VecAdd;
    assign lane_dst        = dst_at3_q;
    assign simple_a        = a_part[SimpleLanes*32-1:0];
    assign simple_b        = b_part[SimpleLanes*32-1:0];
    assign simple_old      = old_part;
    assign mac_a           = mac_a_part;
    assign mac_b           = mac_b_part;
    assign deep_a          = a_part[DeepLanes*32-1:0];
    assign deep_b          = b_part[DeepLanes*32-1:0];
    assign deep_multiplier = multiplier_part;
    assign deep_shift      = shift_part;
  end else begin : gen_registered_operands
    logic                       lane_valid_q, lane_subtract_q;
    ctl_t                       lane_ctl_q;
    tag_t                       lane_tag_q;
    logic [IndexW-1:0]          lane_dst_q;
    logic [MostLanes*32-1:0]    a_q, b_q;
    logic [SimpleLanes*32-1:0]  old_q;
    logic [SimpleLanes*9-1:0]   mac_a_q, mac_b_q;
    logic                       missed_a_q, missed_b_q, missed_old_q;
    logic [DeepChannels*32-1:0] multiplier_q;
    logic [DeepChannels*8-1:0]  shift_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) lane_valid_q <= 1'b0;
      else lane_valid_q <= valid_q[3];
    end
    always_ff @(posedge clk_i) begin
      if (valid_q[3]) begin
        lane_ctl_q      <= ctl3_q;
        lane_tag_q      <= tag3_q;
        lane_subtract_q <= ctl3_q.op != tw_isa_pkg::VecAdd;
        lane_dst_q      <= dst_at3_q;
        a_q             <= a_part;
        b_q             <= b_part;
      end
      missed_a_q <= simple3 && row_done && lane_ctl.dst == ctl3_q.a && lane_dst == a_at3_q;
      missed_b_q <= simple3 && row_done && {1'b0, lane_ctl.dst} == ctl3_q.b && lane_dst == b_at3_q;
      missed_old_q <= simple3 && row_done && {1'b0, lane_ctl.dst} == tw_isa_pkg::SrcAcc && lane_dst == dst_at3_q;
      if (simple3 && mac3) begin
        old_q   <= old_part;
        mac_a_q <= mac_a_part;
        mac_b_q <= mac_b_part;
      end
      if (param3) begin
        multiplier_q <= multiplier_part;
        shift_q      <= shift_part;
      end
    end
    assign lane_valid      = lane_valid_q;
    assign lane_ctl        = lane_ctl_q;
    assign lane_tag        = lane_tag_q;
    assign lane_subtract   = lane_subtract_q;
    assign lane_dst        = lane_dst_q;
    assign deep_a          = a_q[DeepLanes*32-1:0];
    assign deep_b          = b_q[DeepLanes*32-1:0];
    assign deep_multiplier = multiplier_q;
    assign deep_shift      = shift_q;
    // No instruction writes the taps while this one runs, so they need no forwarding.
    assign mac_b = mac_b_q;
    always_comb begin
      simple_a = a_q[SimpleLanes*32-1:0];
      simple_b = b_q[SimpleLanes*32-1:0];
      simple_old = old_q;
      mac_a = mac_a_q;
      if (missed_a_q) begin
        simple_a = write_row_q[SimpleLanes*32-1:0];
        for (int unsigned l = 0; l < SimpleLanes; l++) mac_a[l*9 +: 9] = less_zero(write_row_q[l*32 +: 8], desc_zero_a);
      end
      if (missed_b_q) simple_b = write_row_q[SimpleLanes*32-1:0];
      if (missed_old_q) simple_old = write_row_q[SimpleLanes*32-1:0];
    end
  end
  assign lane_simple = lane_valid && !is_deep(lane_ctl.op);
  logic unused_sources;
  assign unused_sources = ^{lane_ctl.a, lane_ctl.b};

  ///////////////////////
  // Simple operations //
  ///////////////////////

  logic [SimpleLanes*32-1:0] simple_result, lut_result, mac_result;
  logic empty_range;
  assign empty_range = $signed(desc_hi) < $signed(desc_lo);
  for (genvar l = 0; l < SimpleLanes; l++) begin : gen_vector_lane
    logic [63:0] table_word;
    logic [7:0]  lut_byte;
    always_comb begin
      table_word = 'x;
      lut_byte = 'x;
      if (tw_cfg_pkg::VectorLut != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecLut) begin
        table_word = table_q[simple_a[l*32 + 3 +: $clog2(TableWords)]];
        lut_byte = table_word[32'(simple_a[l*32 +: 3])*8 +: 8];
      end
    end
    assign lut_result[l*32 +: 32] = {{24{lut_byte[7]}}, lut_byte};
    tw_vector_lane u_lane (
      .en_i      (lane_simple),
      .op_i      (lane_ctl.op),
      .subtract_i(lane_subtract),
      .narrow_i  ({1'b0, lane_ctl.dst} != tw_isa_pkg::SrcAcc),
      .a_i       (simple_a[l*32 +: 32]),
      .b_i       (simple_b[l*32 +: 32]),
      .lo_i      (desc_lo),
      .none_i    (empty_range),
      .old_i     (simple_old[l*32 +: 32]),
      .da_i      (mac_a[l*9 +: 9]),
      .db_i      (mac_b[l*9 +: 9]),
      .result_o  (simple_result[l*32 +: 32]),
      .mac_o     (mac_result[l*32 +: 32])
    );
  end

  function automatic logic [31:0] saturated(input logic [31:0] value);
    saturated = value;
    if (value[31:7] != {25{value[31]}}) saturated = {{25{value[31]}}, {7{!value[31]}}};
  endfunction

  always_comb begin
    simple_part = 'x;
    if (lane_simple) simple_part = simple_result;
    // Neither needs saturation: a table holds bytes, and a multiply-accumulate writes acc. Chosen last, as they come
    // late.
    if (tw_cfg_pkg::VectorLut != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecLut) simple_part = lut_result;
    if (tw_cfg_pkg::VectorMac != 0 && lane_simple && lane_ctl.op == tw_isa_pkg::VecMac) simple_part = mac_result;
  end

  /////////////////////
  // Deep operations //
  /////////////////////

  logic              deep_final, deep_busy, deep_row_last, deep_last;
  logic [1:0]        deep_dst;
  logic [IndexW-1:0] deep_at;
  logic [3:0]        deep_push;
  tw_vector_deep #(.SliceW(SliceW), .Channels(DeepChannels)) u_deep (
    .clk_i,
    .rst_ni,
    .valid_i     (lane_valid && is_deep(lane_ctl.op)),
    .op_i        (lane_ctl.op),
    .single_i    (lane_ctl.single),
    .dst_i       (lane_ctl.dst),
    .at_i        (lane_dst),
    .last_i      (lane_tag.last),
    .row_last_i  (lane_tag.row_last),
    .slice_i     (lane_tag.slice),
    .second_i    (lane_tag.second),
    .push_i      (lane_tag.push),
    .a_i         (deep_a),
    .b_i         (deep_b),
    .multiplier_i(deep_multiplier),
    .shift_i     (deep_shift),
    .descriptor_i(desc),
    .busy_o      (deep_busy),
    .valid_o     (deep_final),
    .result_o    (deep_result),
    .slice_o     (deep_slice),
    .dst_o       (deep_dst),
    .at_o        (deep_at),
    .last_o      (deep_last),
    .row_last_o  (deep_row_last),
    .push_o      (deep_push)
  );

  always_comb begin
    deep_part = 'x;
    if (deep_final) deep_part = deep_result;
    if (deep_final && {1'b0, deep_dst} != tw_isa_pkg::SrcAcc) begin
      for (int unsigned l = 0; l < DeepLanes; l++) deep_part[l*32 +: 32] = saturated(deep_result[l*32 +: 32]);
    end
  end

  ///////////////
  // Row write //
  ///////////////

  assign row_done = (lane_simple && lane_tag.row_last) || (deep_final && deep_row_last);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_valid_q   <= 1'b0;
      written_valid_q <= 1'b0;
    end else begin
      write_valid_q   <= row_done;
      written_valid_q <= write_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    // A row grows in place, slice by slice: an element is written in its slice's turn.
    for (int unsigned e = 0; e < Elements; e++) begin
      if (deep_final ? DeepSlices == 1 || 32'(deep_slice) == e / DeepLanes
                     : lane_simple && (SimpleSlices == 1 || 32'(lane_tag.slice) == e / SimpleLanes)) begin
        write_row_q[e*32 +: 32] <= deep_final ? deep_part[e % DeepLanes * 32 +: 32] : simple_part[e % SimpleLanes * 32 +: 32];
      end
    end
    if (row_done) begin
      write_dst_q  <= deep_final ? deep_dst : lane_ctl.dst;
      write_at_q   <= deep_final ? deep_at : lane_dst;
      write_last_q <= deep_final ? deep_last : lane_tag.last;
      write_push_q <= deep_final ? deep_push : lane_tag.push;
    end
    if (write_valid_q) begin
      written_dst_q <= write_dst_q;
      written_at_q  <= write_at_q;
    end
  end

  // With more slices, the row written before still has the slices that are forwarded: they are overwritten later.
  if (SimpleSlices <= 1 + 32'(tw_cfg_pkg::VectorStages != 0)) begin : gen_written_row
    logic [Elements*32-1:0] written_row_q;
    always_ff @(posedge clk_i) begin
      if (write_valid_q) written_row_q <= write_row_q;
    end
    assign written_row = written_row_q;
  end else begin : gen_same_row
    assign written_row = write_row_q;
  end

  assign acc_we_o  = write_valid_q && {1'b0, write_dst_q} == tw_isa_pkg::SrcAcc;
  assign out_we_o  = write_valid_q && {1'b0, write_dst_q} == tw_isa_pkg::SrcOut;
  assign inp_we_o  = ReachesInp && write_valid_q && {1'b0, write_dst_q} == tw_isa_pkg::SrcInp;
  assign waddr_o   = write_at_q;
  assign wdata32_o = write_row_q;
  always_comb begin
    for (int unsigned e = 0; e < Elements; e++) wdata8_o[e*8 +: 8] = write_row_q[e*32 +: 8];
  end

  ///////////////////////////////
  // Retirement and assertions //
  ///////////////////////////////

  assign retire_o      = write_valid_q && write_last_q;
  assign retire_push_o = write_push_q;
  assign busy_o        = state_q != StIdle || (|valid_q) || lane_valid || deep_busy || write_valid_q;
  assign working_o     = issue;

  // The decoder lets only operations pass that the configuration builds.
  `TW_ASSERT(StartsBuiltOperation_A, !start || tw_cfg_pkg::VecsBuilt[`TW_FIELD(vector, op, insn_i)])
  `TW_ASSERT(SliceInRow_A, 32'(slice_q) < (insn_deep_q ? DeepSlices : SimpleSlices))
  `TW_ASSERT(PhaseOfThree_A, phase_q != 2'd3)
  `TW_ASSERT(DescriptorWhenDrained_A, !(state_q == StDesc && ((|valid_q) || lane_valid || deep_busy)))
  // A row has one source and one destination.
  `TW_ASSERT(OneResult_A, !(lane_simple && deep_final))
  `TW_ASSERT(OneDestination_A, !write_valid_q || $onehot({acc_we_o, out_we_o, inp_we_o}))
  `TW_ASSERT(OneTrap_A, !(uop_trap && desc_trap))

endmodule
