`include "tw_assert.svh"
`include "tw_fields.svh"

// Gemm unit: one micro-op a cycle, a row of inputs times a block of weights, added to a row of accumulators.
//
//   stage  0          issue: the micro-op memory is read
//          StUop      micro-op plus loop offsets, range check
//          StIndex    inp and wgt are read
//          StMul      multiply and sum, plus one stage for each register of the products (MulStages)
//          StAcc      accumulate; results that acc does not show yet are forwarded
//          StWrite    write
//
// Instructions follow one another without a bubble. Lean configurations save registers: an instruction's fields stay in
// its queue until it retires, and the result is written in StAcc.
module tw_gemm (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic stop_i,

  // Head of the instruction queue, with all its tokens
  input  logic                             insn_valid_i,
  input  logic [tw_cfg_pkg::GemmBodyW-1:0] insn_i,
  input  logic [3:0]                       insn_push_i,
  output logic                             insn_free_o,
  // The queue must keep the instruction's fields: it has started and still reads them
  output logic                             insn_hold_o,

  // Micro-op memory
  output logic                                    uop_re_o,
  output logic [tw_cfg_pkg::GuopW-1:0]            uop_addr_o,
  input  logic [tw_cfg_pkg::GuopEntryBytes*8-1:0] uop_data_i,

  // Scratchpads
  output logic                                   inp_re_o,
  output logic [tw_cfg_pkg::InpW-1:0]            inp_addr_o,
  input  logic [tw_cfg_pkg::InpEntryBytes*8-1:0] inp_data_i,
  output logic                                   wgt_re_o,
  output logic [tw_cfg_pkg::WgtW-1:0]            wgt_addr_o,
  input  logic [tw_cfg_pkg::WgtEntryBytes*8-1:0] wgt_data_i,
  output logic                                   acc_re_o,
  output logic [tw_cfg_pkg::AccW-1:0]            acc_raddr_o,
  input  logic [tw_cfg_pkg::AccEntryBytes*8-1:0] acc_rdata_i,
  output logic                                   acc_we_o,
  output logic [tw_cfg_pkg::AccW-1:0]            acc_waddr_o,
  output logic [tw_cfg_pkg::AccEntryBytes*8-1:0] acc_wdata_o,

  // Retirement, state and traps
  output logic        retire_o,
  output logic [3:0]  retire_push_o,
  output logic        busy_o,
  output logic        working_o,
  output logic        trap_o,
  output logic [31:0] trap_ordinal_o,
  // Unfinished instructions older than the one that reads acc
  output logic [1:0]  acc_older_o
);

  // An index of the micro-op, an offset of the loops, and their sum
  localparam int unsigned AccInpW = tw_cfg_pkg::AccW > tw_cfg_pkg::InpW ? tw_cfg_pkg::AccW : tw_cfg_pkg::InpW;
  localparam int unsigned IndexW = AccInpW > tw_cfg_pkg::WgtW ? AccInpW : tw_cfg_pkg::WgtW;
  localparam int unsigned OffW = IndexW + 1;
  localparam int unsigned SumW = IndexW + 2;
  localparam int unsigned AccBits = tw_cfg_pkg::AccEntryBytes * 8;
  localparam int unsigned Stages = 6 + tw_cfg_pkg::MulStages;
  // Stage numbers
  localparam int unsigned StUop = 1;
  localparam int unsigned StIndex = 2;
  localparam int unsigned StMul = 3;
  localparam int unsigned StAcc = 4 + tw_cfg_pkg::MulStages;
  localparam int unsigned StWrite = 5 + tw_cfg_pkg::MulStages;
  // Enables of the lanes' product registers. Without any, the one bit enables the sum.
  localparam int unsigned Enables = tw_cfg_pkg::MulStages == 0 ? 1 : tw_cfg_pkg::MulStages;
  localparam bit Lean = tw_cfg_pkg::Lean != 0;

  ///////////
  // Issue //
  ///////////

  logic                           walk_valid, walk_last, walk_range, start;
  logic [3*OffW-1:0]              walk_offsets;
  logic [3*tw_cfg_pkg::LoopW-1:0] counts;
  logic [3*IndexW-1:0]            bases;
  logic [9*IndexW-1:0]            steps;

  // Simulators skip the fields while there is no instruction.
  always_comb begin
    counts = 'x;
    bases = 'x;
    steps = 'x;
    if (Lean || insn_valid_i) begin
      counts = {`TW_FIELD(gemm, count2, insn_i), `TW_FIELD(gemm, count1, insn_i), `TW_FIELD(gemm, count0, insn_i)};
      bases = {IndexW'(`TW_FIELD(gemm, wgt, insn_i)), IndexW'(`TW_FIELD(gemm, inp, insn_i)),
               IndexW'(`TW_FIELD(gemm, acc, insn_i))};
      steps = {IndexW'(`TW_FIELD(gemm, wgt2, insn_i)), IndexW'(`TW_FIELD(gemm, inp2, insn_i)),
               IndexW'(`TW_FIELD(gemm, acc2, insn_i)),
               IndexW'(`TW_FIELD(gemm, wgt1, insn_i)), IndexW'(`TW_FIELD(gemm, inp1, insn_i)),
               IndexW'(`TW_FIELD(gemm, acc1, insn_i)),
               IndexW'(`TW_FIELD(gemm, wgt0, insn_i)), IndexW'(`TW_FIELD(gemm, inp0, insn_i)),
               IndexW'(`TW_FIELD(gemm, acc0, insn_i))};
    end
  end

  assign insn_free_o = !walk_valid || (!Lean && walk_last);
  assign start = insn_valid_i && !stop_i && insn_free_o;

  tw_walk #(
    .UopW    (tw_cfg_pkg::GuopW),
    .UopDepth(tw_cfg_pkg::GemmUopDepth),
    .LoopW   (tw_cfg_pkg::LoopW),
    .IndexW  (IndexW),
    .Loops   (tw_cfg_pkg::Loops),
    .Kept    (Lean)
  ) u_walk (
    .clk_i,
    .rst_ni,
    .start_i    (start),
    .uop_i      (`TW_FIELD(gemm, uop, insn_i)),
    .uops_i     (`TW_FIELD(gemm, uops, insn_i)),
    .counts_i   (counts),
    .bases_i    (bases),
    .steps_i    (steps),
    .step_i     (walk_valid && !stop_i),
    .valid_o    (walk_valid),
    .last_o     (walk_last),
    .uop_range_o(walk_range),
    .uop_o      (uop_addr_o),
    .offsets_o  (walk_offsets)
  );

  assign uop_re_o = walk_valid && !stop_i;

  // Fields of the instruction that issues micro-ops
  logic        insn_accumulate_q;
  logic [3:0]  insn_push_q;
  logic [7:0]  insn_zero_point_q;
  logic [31:0] ordinal_q;
  logic [1:0]  recent_starts_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ordinal_q       <= '1;
      recent_starts_q <= '0;
    end else begin
      if (start) ordinal_q <= ordinal_q + 1'b1;
      recent_starts_q <= {recent_starts_q[0], start};
    end
  end

  if (Lean) begin : gen_kept
    assign insn_accumulate_q = `TW_FIELD(gemm, accumulate, insn_i);
    assign insn_push_q       = insn_push_i;
    assign insn_zero_point_q = `TW_FIELD(gemm, wgt_zp, insn_i);
  end else begin : gen_copied
    always_ff @(posedge clk_i) begin
      if (start) begin
        insn_accumulate_q <= `TW_FIELD(gemm, accumulate, insn_i);
        insn_push_q       <= insn_push_i;
        insn_zero_point_q <= `TW_FIELD(gemm, wgt_zp, insn_i);
      end
    end
  end

  //////////////////////
  // Pipeline control //
  //////////////////////

  // Control of each stage: bit or field k belongs to stage k.
  logic [Stages-1:1]                                   valid_q, last_q, add_q;
  logic [3:0]                                          retiring_push;
  logic [7:0]                                          mul_zero_point;
  logic [3*OffW-1:0]                                   offsets_q;
  logic                                                uop_range_q;
  logic [SumW-1:0]                                     acc_sum, inp_sum, wgt_sum;
  logic [tw_cfg_pkg::AccW-1:0]                         acc_index_q;
  logic [tw_cfg_pkg::InpW-1:0]                         inp_index_q;
  logic [tw_cfg_pkg::WgtW-1:0]                         wgt_index_q;
  logic [tw_cfg_pkg::AccW*Stages-1:tw_cfg_pkg::AccW*3] acc_at_q;
  logic                                                bad_q;

  assign acc_sum = SumW'(uop_data_i[tw_cfg_pkg::AccW-1:0]) + SumW'(offsets_q[0 +: OffW]);
  assign inp_sum = SumW'(uop_data_i[tw_cfg_pkg::AccW +: tw_cfg_pkg::InpW]) + SumW'(offsets_q[OffW +: OffW]);
  assign wgt_sum = SumW'(uop_data_i[tw_cfg_pkg::AccW + tw_cfg_pkg::InpW +: tw_cfg_pkg::WgtW]) +
                   SumW'(offsets_q[2*OffW +: OffW]);
  assign trap_o = valid_q[StIndex] && bad_q && !stop_i;
  // The newest ordinal, less the instructions that started after the one in StIndex.
  assign trap_ordinal_o = Lean ? ordinal_q : ordinal_q - 32'(recent_starts_q[0]) - 32'(recent_starts_q[1]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= '0;
    end else begin
      valid_q <= {valid_q[Stages-2:1], walk_valid};
      // A trap drops everything that has not read its operands yet.
      if (stop_i) valid_q[StMul:1] <= '0;
      else if (trap_o) valid_q[StMul:StUop] <= '0;
    end
  end

  always_ff @(posedge clk_i) begin
    last_q      <= {last_q[Stages-2:1], walk_last};
    offsets_q   <= walk_offsets;
    uop_range_q <= walk_range;
    bad_q       <= uop_range_q || acc_sum >= SumW'(tw_cfg_pkg::AccDepth) || inp_sum >= SumW'(tw_cfg_pkg::InpDepth) ||
                  wgt_sum >= SumW'(tw_cfg_pkg::WgtDepth);
    acc_index_q <= tw_cfg_pkg::AccW'(acc_sum);
    inp_index_q <= tw_cfg_pkg::InpW'(inp_sum);
    wgt_index_q <= tw_cfg_pkg::WgtW'(wgt_sum);
    acc_at_q    <= {acc_at_q[tw_cfg_pkg::AccW*(Stages-1)-1:tw_cfg_pkg::AccW*3], acc_index_q};
  end

  if (Lean) begin : gen_kept_fields
    assign add_q          = {(Stages-1){insn_accumulate_q}};
    assign mul_zero_point = insn_zero_point_q;
    assign retiring_push  = insn_push_q;
  end else begin : gen_piped_fields
    logic [4*Stages-1:4]    pushes_q;
    logic [8*(StMul+1)-1:8] zero_points_q;
    assign mul_zero_point = zero_points_q[8*StMul +: 8];
    assign retiring_push  = pushes_q[4*StWrite +: 4];
    always_ff @(posedge clk_i) begin
      add_q         <= {add_q[Stages-2:1], insn_accumulate_q};
      zero_points_q <= {zero_points_q[8*StMul-1:8], insn_zero_point_q};
      pushes_q      <= {pushes_q[4*(Stages-1)-1:4], insn_push_q};
    end
  end

  assign inp_re_o   = valid_q[StIndex] && !bad_q && !stop_i;
  assign inp_addr_o = inp_index_q;
  assign wgt_re_o   = inp_re_o;
  assign wgt_addr_o = wgt_index_q;

  //////////////////////
  // Multiply and sum //
  //////////////////////

  // Element (r, o) of the row is lane r * BlockOut + o.
  logic [AccBits-1:0] sums;
  logic [tw_cfg_pkg::Batch*32-1:0] corrections;
  for (genvar r = 0; r < tw_cfg_pkg::Batch; r++) begin : gen_row
    if (tw_cfg_pkg::WgtZp != 0) begin : gen_zero
      tw_gemm_zero #(.BlockIn(tw_cfg_pkg::BlockIn), .MulStages(tw_cfg_pkg::MulStages)) u_zero (
        .clk_i,
        .en_i        (valid_q[StMul +: Enables]),
        .en_sum_i    (valid_q[StAcc-1]),
        .inp_i       (inp_data_i[r*tw_cfg_pkg::BlockIn*8 +: tw_cfg_pkg::BlockIn*8]),
        .zero_point_i(mul_zero_point),
        .correction_o(corrections[r*32 +: 32])
      );
    end else begin : gen_no_zero
      logic unused_zero_point;
      assign unused_zero_point = ^mul_zero_point;
      assign corrections[r*32 +: 32] = '0;
    end
    for (genvar o = 0; o < tw_cfg_pkg::BlockOut; o++) begin : gen_lane
      localparam int unsigned Lane = r*tw_cfg_pkg::BlockOut + o;
      logic [tw_cfg_pkg::BlockIn*8-1:0] inp, wgt;
      logic [31:0]                      sum;
      assign inp = inp_data_i[r*tw_cfg_pkg::BlockIn*8 +: tw_cfg_pkg::BlockIn*8];
      assign wgt = wgt_data_i[o*tw_cfg_pkg::BlockIn*8 +: tw_cfg_pkg::BlockIn*8];
      assign sums[Lane*32 +: 32] = sum;
      if (Lane + tw_part_pkg::GemmTableLanes < tw_cfg_pkg::RowElements) begin : gen_products
        tw_gemm_lane #(.BlockIn(tw_cfg_pkg::BlockIn), .MulStages(tw_cfg_pkg::MulStages)) u_lane (
          .clk_i,
          .en_i    (valid_q[StMul +: Enables]),
          .en_sum_i(valid_q[StAcc-1]),
          .inp_i   (inp),
          .wgt_i   (wgt),
          .sum_o   (sum)
        );
      end else begin : gen_tables
        tw_gemm_table_lane #(.BlockIn(tw_cfg_pkg::BlockIn), .MulStages(tw_cfg_pkg::MulStages)) u_lane (
          .clk_i,
          .en_i    (valid_q[StMul +: Enables]),
          .en_sum_i(valid_q[StAcc-1]),
          .inp_i   (inp),
          .wgt_i   (wgt),
          .sum_o   (sum)
        );
      end
    end
  end

  //////////////////////////
  // Accumulate and write //
  //////////////////////////

  assign acc_re_o    = valid_q[StAcc-1] && add_q[StAcc-1];
  assign acc_raddr_o = acc_at_q[tw_cfg_pkg::AccW*(StAcc-1) +: tw_cfg_pkg::AccW];

  // A read of acc misses the last two results, so they are forwarded. Lean configurations write a result at once, so
  // the read misses only one.
  logic [AccBits-1:0]          result, result_q, older_result_q, addend;
  logic                        older_valid_q;
  logic [tw_cfg_pkg::AccW-1:0] acc_at, write_at, older_at_q;
  assign acc_at   = acc_at_q[tw_cfg_pkg::AccW*StAcc +: tw_cfg_pkg::AccW];
  assign write_at = acc_at_q[tw_cfg_pkg::AccW*StWrite +: tw_cfg_pkg::AccW];
  always_comb begin
    addend = acc_rdata_i;
    if (!add_q[StAcc]) addend = '0;
    else if (valid_q[StWrite] && write_at == acc_at) addend = result_q;
    else if (!Lean && older_valid_q && older_at_q == acc_at) addend = older_result_q;
  end

  always_comb begin
    result = 'x;
    if (valid_q[StAcc]) begin
      for (int unsigned e = 0; e < tw_cfg_pkg::RowElements; e++) begin
        result[e*32 +: 32] = addend[e*32 +: 32] + sums[e*32 +: 32] - corrections[e/tw_cfg_pkg::BlockOut*32 +: 32];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_q[StAcc]) result_q <= result;
    if (valid_q[StWrite]) begin
      older_result_q <= result_q;
      older_at_q     <= write_at;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) older_valid_q <= 1'b0;
    else older_valid_q <= valid_q[StWrite];
  end

  // The stage that writes and retires
  localparam int unsigned StDone = Lean ? StAcc : StWrite;
  assign acc_we_o    = valid_q[StDone];
  assign acc_waddr_o = Lean ? acc_at : write_at;
  assign acc_wdata_o = Lean ? result : result_q;

  assign acc_older_o   = Lean ? 2'd0 : 2'(valid_q[StAcc] && last_q[StAcc]) + 2'(valid_q[StWrite] && last_q[StWrite]);
  assign retire_o      = valid_q[StDone] && last_q[StDone];
  assign retire_push_o = retiring_push;
  assign busy_o        = walk_valid || (|valid_q[StDone:1]);
  assign insn_hold_o   = busy_o;
  assign working_o     = walk_valid;

  ////////////////
  // Assertions //
  ////////////////

  // The decoder lets no empty loop pass.
  `TW_ASSERT(StartsWithMicroOps_A, !start || (`TW_FIELD(gemm, uops, insn_i) != '0 && `TW_FIELD(gemm, count0, insn_i) != '0))
  `TW_ASSERT(ReadsInRange_A, !inp_re_o || (32'(inp_addr_o) < tw_cfg_pkg::InpDepth && 32'(wgt_addr_o) < tw_cfg_pkg::WgtDepth))
  `TW_ASSERT(WriteInRange_A, !acc_we_o || 32'(acc_waddr_o) < tw_cfg_pkg::AccDepth)

endmodule
