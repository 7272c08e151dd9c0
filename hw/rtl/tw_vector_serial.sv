`include "tw_assert.svh"
`include "tw_fields.svh"

// Vector unit of small parts: one instruction and one element at a time, on one adder.
//
// The queue keeps the fields of the instruction until it retires. Param is read row by row, one byte of a row a cycle.
//
//   PhIssue, PhIndex, PhRead      micro-op, index, operands
//   PhTake, PhAdd                 operand a becomes the sum
//   PhLoad, PhSum, PhCut, PhBack  load a word and add it, or apply it as a bound; a stage each for operand b (or bias),
//                                 zero point, upper and lower bound
//   PhScale to PhOver             requantize only: multiplier, product, rounding, shift
//   PhEnd                         the element enters its row
//
// A bound is applied by subtracting it, replacing what is beyond it by zero, and adding the bound again. The product
// takes one bit of x a cycle, lowest first; its own low bits shift into the register that the bits of x leave.
module tw_vector_serial (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // Head of the instruction queue
  input  logic                               insn_valid_i,
  input  logic [tw_cfg_pkg::VectorBodyW-1:0] insn_i,
  input  logic [3:0]                         insn_push_i,
  output logic                               insn_free_o,
  // The queue must keep the instruction's fields: it has started and still reads them
  output logic                               insn_hold_o,

  // Micro-op memory
  output logic                                    uop_re_o,
  output logic [tw_cfg_pkg::VuopW-1:0]            uop_addr_o,
  input  logic [tw_cfg_pkg::VuopEntryBytes*8-1:0] uop_data_i,

  // Operand reads: bit or slot 0 is operand a, bit or slot 1 is operand b
  output logic [1:0]                                  acc_re_o,
  output logic [2*tw_cfg_pkg::AccW-1:0]               acc_raddr_o,
  input  logic [2*tw_cfg_pkg::AccEntryBytes*8-1:0]    acc_rdata_i,
  output logic [1:0]                                  out_re_o,
  output logic [2*$clog2(tw_cfg_pkg::OutDepth)-1:0]   out_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0]    out_rdata_i,
  output logic [1:0]                                  inp_re_o,
  output logic [2*tw_cfg_pkg::InpW-1:0]               inp_raddr_o,
  input  logic [2*tw_cfg_pkg::OutEntryBytes*8-1:0]    inp_rdata_i,
  // A row of param
  output logic                                        param_re_o,
  output logic [$clog2(tw_cfg_pkg::ParamEntries)-1:0] param_addr_o,
  input  logic [tw_cfg_pkg::ParamEntryBytes*8-1:0]    param_data_i,

  // Row writes
  output logic                                   acc_we_o,
  output logic                                   out_we_o,
  output logic                                   inp_we_o,
  output logic [tw_cfg_pkg::VecW-1:0]            waddr_o,
  output logic [tw_cfg_pkg::AccEntryBytes*8-1:0] wdata32_o,
  output logic [tw_cfg_pkg::OutEntryBytes*8-1:0] wdata8_o,

  // Retirement, state and traps
  output logic        retire_o,
  output logic [3:0]  retire_push_o,
  output logic        busy_o,
  output logic        working_o,
  output logic        trap_o,
  output logic [31:0] trap_ordinal_o
);

  localparam int unsigned Elements = tw_cfg_pkg::RowElements;
  localparam int unsigned SliceW = Elements > 1 ? $clog2(Elements) : 1;
  localparam int unsigned BlockOut = tw_cfg_pkg::BlockOut;
  localparam int unsigned ChannelW = BlockOut > 1 ? $clog2(BlockOut) : 1;
  localparam int unsigned IndexW = tw_cfg_pkg::VecW;
  localparam int unsigned OffW = IndexW + 1;
  localparam int unsigned SumW = IndexW + 2;
  localparam int unsigned OutW = $clog2(tw_cfg_pkg::OutDepth);
  localparam int unsigned RowW = $clog2(tw_cfg_pkg::ParamEntries);
  // The vector unit reaches inp only where inp rows have the size of out rows; the decoder checks that.
  localparam bit ReachesInp = tw_cfg_pkg::VectorReachesInp != 0;
  // Enough for a sum of two 32-bit values minus a third
  localparam int unsigned AccBits = 34;

  typedef enum logic [4:0] {
    PhIdle, PhCheck, PhIssue, PhIndex, PhRead, PhTake, PhAdd, PhLoad, PhSum, PhCut, PhBack, PhScale, PhMove, PhMul, PhRound,
    PhAway, PhShift, PhLast, PhOver, PhEnd
  } phase_e;
  // The word that is loaded and added: operand b or bias, zero point, upper bound, lower bound
  typedef enum logic [1:0] {StageB, StageZero, StageHi, StageLo} stage_e;

  /////////////////////////////////////
  // Instruction and order of phases //
  /////////////////////////////////////

  phase_e            phase_q, phase_d;
  stage_e            stage_q, stage_d;
  logic [4:0]        count_q, count_last;
  logic [SliceW-1:0] slice_q;
  logic [31:0]       ordinal_q;
  logic              start, phase_last, slice_last, walk_valid, walk_last, walk_range, row_end;

  logic [4:0] op;
  logic [2:0] dst, a, b;
  logic       single, requant, clip, constants;
  assign op        = `TW_FIELD(vector, op, insn_i);
  assign single    = `TW_FIELD(vector, mode, insn_i);
  assign dst       = {1'b0, `TW_FIELD(vector, dst, insn_i)};
  assign a         = {1'b0, `TW_FIELD(vector, a, insn_i)};
  assign b         = `TW_FIELD(vector, b, insn_i);
  assign requant   = op == tw_isa_pkg::VecRequant;
  assign clip      = op == tw_isa_pkg::VecClip;
  assign constants = requant || clip || b == tw_isa_pkg::SrcScalar;

  assign insn_free_o = phase_q == PhIdle;
  assign start       = insn_valid_i && !stop_i && insn_free_o;
  assign slice_last  = slice_q == SliceW'(Elements - 1);
  assign row_end     = phase_q == PhEnd && slice_last && !stop_i;
  always_comb begin
    unique case (phase_q)
      PhLoad:                  count_last = 5'd4;
      PhScale:                 count_last = 5'd1;
      PhMove, PhMul, PhShift:  count_last = 5'd31;
      default:                 count_last = 5'd0;
    endcase
  end
  assign phase_last = count_q == count_last;
  always_comb begin
    phase_d = phase_e'(phase_q + 5'd1);
    stage_d = stage_q;
    unique case (phase_q)
      PhIdle: if (!start) phase_d = PhIdle;
      PhAdd:  stage_d = StageB;
      PhBack: begin
        phase_d = PhLoad;
        stage_d = StageHi;
        if (stage_q == StageB && requant) phase_d = PhScale;
        else if (stage_q == StageHi) stage_d = StageLo;
        else if (stage_q == StageLo || (stage_q == StageB && !clip)) phase_d = PhEnd;
      end
      PhOver: begin
        phase_d = PhSum;
        stage_d = StageZero;
      end
      PhEnd:  phase_d = slice_last && walk_last ? PhIdle : PhIssue;
      default: ;
    endcase
    if (stop_i || trap_o) phase_d = PhIdle;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      phase_q   <= PhIdle;
      count_q   <= '0;
      ordinal_q <= '1;
    end else begin
      if (phase_last || stop_i) phase_q <= phase_d;
      count_q <= phase_last || stop_i ? '0 : count_q + 1'b1;
      if (start) ordinal_q <= ordinal_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (phase_last) stage_q <= stage_d;
    if (phase_q == PhCheck) slice_q <= '0;
    else if (phase_q == PhEnd) slice_q <= slice_last ? '0 : slice_q + 1'b1;
  end

  ///////////////////////////////
  // Indices and operand reads //
  ///////////////////////////////

  // Indices of the row. The micro-op memory keeps its output while the row is computed.
  logic [3*OffW-1:0] offsets;
  logic [SumW-1:0]   dst_at, a_at, b_at;
  tw_walk #(
    .UopW    (tw_cfg_pkg::VuopW),
    .UopDepth(tw_cfg_pkg::VectorUopDepth),
    .LoopW   (tw_cfg_pkg::LoopW),
    .IndexW  (IndexW),
    .Loops   (tw_cfg_pkg::Loops),
    .Kept    (1'b1)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .start_i    (start),
    .uop_i      (`TW_FIELD(vector, uop, insn_i)),
    .uops_i     (`TW_FIELD(vector, uops, insn_i)),
    .counts_i   ({`TW_FIELD(vector, count2, insn_i), `TW_FIELD(vector, count1, insn_i), `TW_FIELD(vector, count0, insn_i)}),
    .bases_i    ({`TW_FIELD(vector, b_at, insn_i), `TW_FIELD(vector, a_at, insn_i), `TW_FIELD(vector, dst_at, insn_i)}),
    .steps_i    ({`TW_FIELD(vector, b2, insn_i), `TW_FIELD(vector, a2, insn_i), `TW_FIELD(vector, dst2, insn_i),
                  `TW_FIELD(vector, b1, insn_i), `TW_FIELD(vector, a1, insn_i), `TW_FIELD(vector, dst1, insn_i),
                  `TW_FIELD(vector, b0, insn_i), `TW_FIELD(vector, a0, insn_i), `TW_FIELD(vector, dst0, insn_i)}),
    .step_i     (row_end),
    .valid_o    (walk_valid),
    .last_o     (walk_last),
    .uop_range_o(walk_range),
    .uop_o      (uop_addr_o),
    .offsets_o  (offsets)
  );
  assign uop_re_o = phase_q == PhIssue;
  assign dst_at   = SumW'(uop_data_i[0 +: IndexW]) + SumW'(offsets[0 +: OffW]);
  assign a_at     = SumW'(uop_data_i[IndexW +: IndexW]) + SumW'(offsets[OffW +: OffW]);
  assign b_at     = SumW'(uop_data_i[2*IndexW +: IndexW]) + SumW'(offsets[2*OffW +: OffW]);

  function automatic logic out_of_range(input logic [SumW-1:0] index, input logic [2:0] src);
    unique case (src)
      tw_isa_pkg::SrcAcc:   out_of_range = 32'(index) >= tw_cfg_pkg::AccDepth;
      tw_isa_pkg::SrcOut:   out_of_range = 32'(index) >= tw_cfg_pkg::OutDepth;
      tw_isa_pkg::SrcInp:   out_of_range = 32'(index) >= tw_cfg_pkg::InpDepth;
      tw_isa_pkg::SrcParam: out_of_range = 32'(index) >= tw_cfg_pkg::ParamDepth;
      default:              out_of_range = 1'b0;
    endcase
  endfunction

  logic bad_index, desc_range, desc_trap, uop_trap, read, read_b;
  assign bad_index      = walk_range || out_of_range(dst_at, dst) || out_of_range(a_at, a) || out_of_range(b_at, b);
  assign desc_range     = 32'(`TW_FIELD(vector, descriptor, insn_i)) + tw_cfg_pkg::DescriptorEntries > tw_cfg_pkg::ParamDepth;
  assign uop_trap       = phase_q == PhRead && bad_index && !stop_i;
  assign desc_trap      = phase_q == PhCheck && constants && desc_range && !stop_i;
  assign trap_o         = uop_trap || desc_trap;
  assign trap_ordinal_o = ordinal_q;

  // Operand b is read together with a, so that two reads of one bank are reported as a collision, and again when it is
  // taken.
  assign read        = phase_q == PhRead && !bad_index && !stop_i;
  assign read_b      = read || (phase_q == PhLoad && stage_q == StageB && count_q == '0 && !stop_i);
  assign acc_re_o    = {read_b && b == tw_isa_pkg::SrcAcc, read && a == tw_isa_pkg::SrcAcc};
  assign out_re_o    = {read_b && b == tw_isa_pkg::SrcOut, read && a == tw_isa_pkg::SrcOut};
  assign inp_re_o    = {ReachesInp && read_b && b == tw_isa_pkg::SrcInp, ReachesInp && read && a == tw_isa_pkg::SrcInp};
  assign acc_raddr_o = {tw_cfg_pkg::AccW'(b_at), tw_cfg_pkg::AccW'(a_at)};
  assign out_raddr_o = {OutW'(b_at), OutW'(a_at)};
  assign inp_raddr_o = {tw_cfg_pkg::InpW'(b_at), tw_cfg_pkg::InpW'(a_at)};

  ///////////
  // Param //
  ///////////

  // Four bytes are read one after the other: of a channel (in consecutive rows), or of the descriptor. A shift is one
  // byte.
  logic                         is_entry, b_is_param, load_word;
  logic [5:0]                   first_byte, byte_at, row;
  logic [ChannelW-1:0]          channel, channel_q;
  logic [tw_cfg_pkg::DescW-1:0] entry;
  logic [7:0]                   param_byte;
  always_comb begin
    is_entry = 1'b0;
    first_byte = tw_isa_pkg::DescZeroPointLsb[8:3];
    unique case (phase_q)
      PhScale: begin
        is_entry = 1'b1;
        first_byte = 6'(tw_isa_pkg::ParamShiftRow);
      end
      PhMove: begin
        is_entry = 1'b1;
        first_byte = 6'(tw_isa_pkg::ParamMultiplierRow);
      end
      PhLoad: begin
        if (stage_q == StageHi) first_byte = tw_isa_pkg::DescHiLsb[8:3];
        if (stage_q == StageLo) first_byte = tw_isa_pkg::DescLoLsb[8:3];
        if (stage_q == StageB) begin
          is_entry = b == tw_isa_pkg::SrcParam;
          first_byte = b == tw_isa_pkg::SrcParam ? 6'(tw_isa_pkg::ParamBiasRow) : tw_isa_pkg::DescScalarLsb[8:3];
        end
      end
      default: ;
    endcase
  end
  assign b_is_param   = b == tw_isa_pkg::SrcParam || b == tw_isa_pkg::SrcScalar;
  assign load_word    = (phase_q == PhLoad && (stage_q != StageB || b_is_param)) || phase_q == PhMove || phase_q == PhShift;
  assign byte_at      = first_byte + {4'd0, count_q[1:0]};
  assign row          = is_entry ? byte_at : byte_at >> $clog2(BlockOut);
  assign channel      = ChannelW'(is_entry ? 32'(slice_q) : 32'(byte_at)) & ChannelW'(BlockOut - 1);
  assign entry        = is_entry ? tw_cfg_pkg::DescW'(b_at) : `TW_FIELD(vector, descriptor, insn_i);
  assign param_re_o   = load_word || phase_q == PhScale;
  assign param_addr_o = RowW'(entry) * RowW'(tw_isa_pkg::ParamRows) + RowW'(row);
  assign param_byte   = param_data_i[32'(channel_q)*8 +: 8];
  always_ff @(posedge clk_i) channel_q <= channel;

  //////////////
  // Operands //
  //////////////

  // The element of the operand that is taken
  logic                   take_a, take_b;
  logic [2:0]             src;
  logic [Elements*32-1:0] acc_row;
  logic [Elements*8-1:0]  out_row, inp_row;
  logic [7:0]             element8;
  logic [31:0]            element;
  assign take_a   = phase_q == PhTake;
  assign take_b   = phase_q == PhLoad && stage_q == StageB && count_q == 5'd1 && !b_is_param;
  assign src      = take_a ? a : b;
  assign acc_row  = take_a ? acc_rdata_i[0 +: Elements*32] : acc_rdata_i[Elements*32 +: Elements*32];
  assign out_row  = take_a ? out_rdata_i[0 +: Elements*8] : out_rdata_i[Elements*8 +: Elements*8];
  assign inp_row  = take_a ? inp_rdata_i[0 +: Elements*8] : inp_rdata_i[Elements*8 +: Elements*8];
  assign element8 = ReachesInp && src == tw_isa_pkg::SrcInp ? inp_row[32'(slice_q)*8 +: 8] : out_row[32'(slice_q)*8 +: 8];
  assign element  = src == tw_isa_pkg::SrcAcc ? acc_row[32'(slice_q)*32 +: 32] : {{24{element8[7]}}, element8};

  // The word that is added: an element, or four bytes of param
  logic [31:0] word_q;
  always_ff @(posedge clk_i) begin
    if (take_a || take_b) word_q <= element;
    else if (load_word && count_q != '0 && count_q <= 5'd4) word_q <= {param_byte, word_q[31:8]};
  end

  ////////////////
  // Arithmetic //
  ////////////////

  // A shift: to the left (double mode only) or to the right, at most 31
  logic       shift_is_left_q, shift_right_q, steps;
  logic [4:0] shift, shift_rest_q;
  always_comb begin
    shift = (|param_byte[6:5]) ? 5'd31 : param_byte[4:0];
    if (param_byte[7]) begin
      if (single) shift = 5'd0;
      else shift = (param_byte[6:5] != 2'b11 || param_byte[4:0] == 5'd0) ? 5'd31 : 5'd0 - param_byte[4:0];
    end
  end
  assign steps = shift_rest_q != '0 && ((phase_q == PhMove && shift_is_left_q) || (phase_q == PhShift && !shift_is_left_q));
  always_ff @(posedge clk_i) begin
    if (phase_q == PhScale) begin
      shift_rest_q    <= shift;
      shift_is_left_q <= !single && !param_byte[7];
      shift_right_q   <= shift != '0 && (single || param_byte[7]);
    end else if (steps) begin
      shift_rest_q <= shift_rest_q - 1'b1;
    end
  end

  // In each cycle the accumulator adds the word, subtracts it, or adds nothing, and can shift right by one.
  logic               add_word, invert, carry, clear, shift_acc, overflow, negative, is_minimum, is_maximum;
  logic [AccBits-1:0] acc_q, addend, sum;
  logic [AccBits:0]   sum_carry;
  logic [31:0]        x_q;
  assign negative = acc_q[AccBits-1];
  // Only 2^31 overflows; it saturates.
  assign overflow   = !negative && acc_q[31];
  assign is_minimum = (stage_q == StageB && op == tw_isa_pkg::VecMin) || stage_q == StageHi;
  assign is_maximum = (stage_q == StageB && op == tw_isa_pkg::VecMax) || stage_q == StageLo;
  always_comb begin
    add_word = 1'b0;
    invert = 1'b0;
    carry = 1'b0;
    clear = phase_q == PhIndex;
    shift_acc = 1'b0;
    unique case (phase_q)
      PhAdd: add_word = 1'b1;
      PhSum: begin
        invert = is_minimum || is_maximum || (stage_q == StageB && op == tw_isa_pkg::VecSub);
        carry = invert;
        add_word = invert || stage_q == StageZero || op == tw_isa_pkg::VecAdd || requant;
      end
      PhCut: clear = (is_minimum && !negative) || (is_maximum && negative);
      PhBack: add_word = is_minimum || is_maximum;
      PhMove: begin
        shift_acc = !steps;
        clear = phase_last;
      end
      PhMul: begin
        add_word = x_q[0];
        invert = x_q[0] && phase_last;
        carry = invert;
        shift_acc = !phase_last;
      end
      PhRound: carry = !single && x_q[31];
      PhAway:  invert = !single && (overflow || (negative && shift_right_q));
      PhShift: shift_acc = steps;
      PhLast:  carry = (single || shift_right_q) && x_q[31];
      PhOver:  invert = overflow;
      default: ;
    endcase
  end
  assign addend    = {AccBits{invert}} ^ ({{(AccBits-32){word_q[31]}}, word_q} & {AccBits{add_word}});
  assign sum_carry = {acc_q, 1'b1} + {addend, carry};
  assign sum       = sum_carry[AccBits:1];
  always_ff @(posedge clk_i) begin
    if (clear) acc_q <= '0;
    else acc_q <= shift_acc ? {sum[AccBits-1], sum[AccBits-1:1]} : sum;
    if (shift_acc || phase_q == PhMove) x_q <= {sum[0] && shift_acc, x_q[31:1]};
  end

  //////////////////////////////
  // Row write and retirement //
  //////////////////////////////

  // Elements wait in a shift register until the last one of the row is there; then the row is written.
  logic [31:0] result;
  always_comb begin
    result = acc_q[31:0];
    if (dst != tw_isa_pkg::SrcAcc && acc_q[31:7] != {25{acc_q[31]}}) result[7:0] = {acc_q[31], {7{!acc_q[31]}}};
  end
  if (Elements == 1) begin : gen_element
    assign wdata32_o = result;
  end else begin : gen_row
    logic [(Elements-1)*32-1:0] row_q;
    always_ff @(posedge clk_i) begin
      if (phase_q == PhEnd) row_q <= ((Elements-1)*32)'({result, row_q} >> 32);
    end
    assign wdata32_o = {result, row_q};
  end
  always_comb begin
    for (int unsigned e = 0; e < Elements; e++) wdata8_o[e*8 +: 8] = wdata32_o[e*32 +: 8];
  end
  assign acc_we_o = row_end && dst == tw_isa_pkg::SrcAcc;
  assign out_we_o = row_end && dst == tw_isa_pkg::SrcOut;
  assign inp_we_o = ReachesInp && row_end && dst == tw_isa_pkg::SrcInp;
  assign waddr_o  = dst_at[IndexW-1:0];

  assign retire_o      = row_end && walk_last;
  assign retire_push_o = insn_push_i;
  assign busy_o        = phase_q != PhIdle;
  assign insn_hold_o   = busy_o;
  assign working_o     = busy_o && phase_q != PhCheck;

  logic unused;
  assign unused = ^{walk_valid, sum_carry[0], dst_at, a_at, b_at, uop_data_i, inp_row};

  ////////////////
  // Assertions //
  ////////////////

  `TW_ASSERT(StartsBuiltOperation_A, !start || tw_cfg_pkg::VecsBuilt[op])
  `TW_ASSERT(WalkWhileBusy_A, !row_end || walk_valid)
  `TW_ASSERT(OneDestination_A, !row_end || $onehot({acc_we_o, out_we_o, inp_we_o}))
  `TW_ASSERT(OneTrap_A, !(uop_trap && desc_trap))

endmodule
