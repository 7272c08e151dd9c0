`include "tw_assert.svh"

// Deep vector operations on the requantize lanes: stages 3 to 8 of tw_vector.
//
// - requantize: a plus bias, scaled by the channel's multiplier and shift
// - mul: the product of two int8 rows, scaled
// - qadd: the sum of two int8 rows. Each operand is scaled by its own multiplier, then their sum by a third one: three
//   passes through the lanes, the sum five cycles after the first operand.
//
// Serial lanes work on one pass at a time. With VectorStages 2, every stage number is one greater.
module tw_vector_deep #(
  parameter int unsigned SliceW = 1,
  // Channels of a slice
  parameter int unsigned Channels = 1,
  localparam int unsigned IndexW = tw_cfg_pkg::VecW
) (
  input  logic clk_i,
  input  logic rst_ni,

  // A pass: a slice of both operands, the parameters of its channels, and where the result goes
  input  logic                                     valid_i,
  input  logic [4:0]                               op_i,
  input  logic                                     single_i,
  input  logic [1:0]                               dst_i,
  input  logic [IndexW-1:0]                        at_i,
  input  logic                                     last_i,
  input  logic                                     row_last_i,
  input  logic [SliceW-1:0]                        slice_i,
  // The pass is operand b of a quantized add
  input  logic                                     second_i,
  input  logic [3:0]                               push_i,
  input  logic [tw_cfg_pkg::RequantLanes*32-1:0]   a_i,
  input  logic [tw_cfg_pkg::RequantLanes*32-1:0]   b_i,
  input  logic [Channels*32-1:0]                   multiplier_i,
  input  logic [Channels*8-1:0]                    shift_i,
  input  logic [tw_isa_pkg::DescriptorBytes*8-1:0] descriptor_i,
  output logic                                     busy_o,

  // A slice of the result row
  output logic                                   valid_o,
  output logic [tw_cfg_pkg::RequantLanes*32-1:0] result_o,
  output logic [SliceW-1:0]                      slice_o,
  output logic [1:0]                             dst_o,
  output logic [IndexW-1:0]                      at_o,
  output logic                                   last_o,
  output logic                                   row_last_o,
  output logic [3:0]                             push_o
);

  localparam int unsigned Lanes = tw_cfg_pkg::RequantLanes;

  ///////////
  // Types //
  ///////////

  // What goes through the lanes: an operation of one pass, or operand a, operand b or the sum of a quantized add
  typedef enum logic [1:0] {KindFinal, KindA, KindB, KindSum} kind_e;

  typedef struct packed {
    logic              single;
    logic [1:0]        dst;
    logic [IndexW-1:0] at;
    logic              last;
    logic              row_last;
    logic [SliceW-1:0] slice;
    kind_e             kind;
    logic [3:0]        push;
  } pass_t;

  ///////////////////////
  // Descriptor fields //
  ///////////////////////

  logic [31:0] desc_lo, desc_hi, desc_zero_point, desc_multiplier_a, desc_multiplier_b, desc_multiplier;
  logic [7:0]  desc_shift_a, desc_shift_b, desc_shift, desc_left_shift, desc_zero_a, desc_zero_b;
  assign desc_lo           = descriptor_i[tw_isa_pkg::DescLoLsb +: 32];
  assign desc_hi           = descriptor_i[tw_isa_pkg::DescHiLsb +: 32];
  assign desc_zero_point   = descriptor_i[tw_isa_pkg::DescZeroPointLsb +: 32];
  assign desc_multiplier_a = descriptor_i[tw_isa_pkg::DescMultiplierALsb +: 32];
  assign desc_multiplier_b = descriptor_i[tw_isa_pkg::DescMultiplierBLsb +: 32];
  assign desc_multiplier   = descriptor_i[tw_isa_pkg::DescMultiplierLsb +: 32];
  assign desc_shift_a      = descriptor_i[tw_isa_pkg::DescShiftALsb +: 8];
  assign desc_shift_b      = descriptor_i[tw_isa_pkg::DescShiftBLsb +: 8];
  assign desc_shift        = descriptor_i[tw_isa_pkg::DescShiftLsb +: 8];
  assign desc_left_shift   = descriptor_i[tw_isa_pkg::DescLeftShiftLsb +: 8];
  assign desc_zero_a       = descriptor_i[tw_isa_pkg::DescZeroALsb +: 8];
  assign desc_zero_b       = descriptor_i[tw_isa_pkg::DescZeroBLsb +: 8];

  ///////////////////////
  // Operands, stage 3 //
  ///////////////////////

  // `passN_q` describes what entered the lanes N - 3 cycles ago. Serial lanes keep their one pass in pass8_q.
  logic                entry_valid, sum_entry, scaled_valid;
  pass_t               pass3, entry, pass8_q, scaled_pass;
  logic [8:4]          valid_q;
  logic [Lanes*32-1:0] entry_x, entry_multiplier, scaled, result, scaled_a_q;
  logic [Lanes*8-1:0]  entry_shift;

  assign pass3.single   = single_i;
  assign pass3.dst      = dst_i;
  assign pass3.at       = at_i;
  assign pass3.last     = last_i;
  assign pass3.row_last = row_last_i;
  assign pass3.slice    = slice_i;
  assign pass3.kind     = op_i != tw_isa_pkg::VecQadd ? KindFinal : (second_i ? KindB : KindA);
  assign pass3.push     = push_i;

  // Operands that enter the lanes, through a register where VectorStages is 2
  logic                operand_valid;
  pass_t               operand_pass;
  logic [Lanes*32-1:0] operand_x_d, operand_multiplier_d, operand_x, operand_multiplier;
  logic [Lanes*8-1:0]  operand_shift_d, operand_shift;
  if (tw_cfg_pkg::VectorStages < 2) begin : gen_operands
    assign operand_valid      = valid_i;
    assign operand_pass       = pass3;
    assign operand_x          = operand_x_d;
    assign operand_multiplier = operand_multiplier_d;
    assign operand_shift      = operand_shift_d;
  end else begin : gen_registered_operands
    logic                operand_valid_q;
    pass_t               pass_q;
    logic [Lanes*32-1:0] x_q, multiplier_q;
    logic [Lanes*8-1:0]  shift_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) operand_valid_q <= 1'b0;
      else operand_valid_q <= valid_i;
    end
    always_ff @(posedge clk_i) begin
      if (valid_i) begin
        pass_q       <= pass3;
        x_q          <= operand_x_d;
        multiplier_q <= operand_multiplier_d;
        shift_q      <= operand_shift_d;
      end
    end
    assign operand_valid      = operand_valid_q;
    assign operand_pass       = pass_q;
    assign operand_x          = x_q;
    assign operand_multiplier = multiplier_q;
    assign operand_shift      = shift_q;
  end

  // The sum of a quantized add enters when operand b leaves. The issue logic keeps the lanes free for it.
  assign sum_entry   = scaled_valid && scaled_pass.kind == KindB;
  assign entry_valid = sum_entry || operand_valid;
  always_comb begin
    entry = sum_entry ? scaled_pass : operand_pass;
    if (sum_entry) entry.kind = KindSum;
  end

  //////////////////////
  // Requantize lanes //
  //////////////////////

  for (genvar l = 0; l < Lanes; l++) begin : gen_requant_lane
    // Values of each operation; the operands of mul and qadd less their zero points
    logic [31:0] a, b, lane_x, lane_multiplier;
    logic [7:0]  lane_shift, a_byte, b_byte;
    logic [8:0]  a_less_zero, b_less_zero, addend;
    logic [17:0] product;
    assign a = a_i[l*32 +: 32];
    assign b = b_i[l*32 +: 32];
    assign a_byte = a[7:0];
    assign b_byte = b[7:0];
    always_comb begin
      a_less_zero = 'x;
      b_less_zero = 'x;
      product = 'x;
      addend = 'x;
      if (valid_i) begin
        a_less_zero = {a_byte[7], a_byte} - {desc_zero_a[7], desc_zero_a};
        b_less_zero = {b_byte[7], b_byte} - {desc_zero_b[7], desc_zero_b};
        product = {{9{a_less_zero[8]}}, a_less_zero} * {{9{b_less_zero[8]}}, b_less_zero};
        addend = pass3.kind == KindA ? a_less_zero : b_less_zero;
      end
    end
    always_comb begin
      lane_x = 'x;
      lane_multiplier = 'x;
      lane_shift = 'x;
      if (valid_i) begin
        lane_x = a + b;
        lane_multiplier = multiplier_i[(l % Channels)*32 +: 32];
        lane_shift = shift_i[(l % Channels)*8 +: 8];
      end
      if (tw_cfg_pkg::VectorMul != 0 && valid_i && op_i == tw_isa_pkg::VecMul) begin
        lane_x = {{14{product[17]}}, product};
        lane_multiplier = desc_multiplier;
        lane_shift = desc_shift;
      end
      if (tw_cfg_pkg::VectorQadd != 0 && valid_i && op_i == tw_isa_pkg::VecQadd) begin
        lane_x = {{23{addend[8]}}, addend} << desc_left_shift[4:0];
        lane_multiplier = pass3.kind == KindA ? desc_multiplier_a : desc_multiplier_b;
        lane_shift = pass3.kind == KindA ? desc_shift_a : desc_shift_b;
      end
    end
    assign operand_x_d[l*32 +: 32] = lane_x;
    assign operand_multiplier_d[l*32 +: 32] = lane_multiplier;
    assign operand_shift_d[l*8 +: 8] = lane_shift;
    always_comb begin
      entry_x[l*32 +: 32] = 'x;
      entry_multiplier[l*32 +: 32] = 'x;
      entry_shift[l*8 +: 8] = 'x;
      if (operand_valid) begin
        entry_x[l*32 +: 32] = operand_x[l*32 +: 32];
        entry_multiplier[l*32 +: 32] = operand_multiplier[l*32 +: 32];
        entry_shift[l*8 +: 8] = operand_shift[l*8 +: 8];
      end
      if (tw_cfg_pkg::VectorQadd != 0 && sum_entry) begin
        entry_x[l*32 +: 32] = scaled_a_q[l*32 +: 32] + scaled[l*32 +: 32];
        entry_multiplier[l*32 +: 32] = desc_multiplier;
        entry_shift[l*8 +: 8] = desc_shift;
      end
    end

    if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial
      tw_requant_serial u_lane (
        .clk_i,
        .rst_ni,
        .load_i      (entry_valid),
        .x_i         (entry_x[l*32 +: 32]),
        .multiplier_i(entry_multiplier[l*32 +: 32]),
        .shift_i     (entry_shift[l*8 +: 8]),
        .single_i    (entry.single),
        .raw_i       (entry.kind == KindA || entry.kind == KindB),
        .zero_point_i(desc_zero_point),
        .lo_i        (desc_lo),
        .hi_i        (desc_hi),
        .result_o    (result[l*32 +: 32])
      );
      assign scaled[l*32 +: 32] = result[l*32 +: 32];
    end else begin : gen_parallel
      tw_requant_lane u_lane (
        .clk_i,
        .en_i        ({valid_q[7:4], entry_valid}),
        .x_i         (entry_x[l*32 +: 32]),
        .multiplier_i(entry_multiplier[l*32 +: 32]),
        .shift_i     (entry_shift[l*8 +: 8]),
        .single_i    (entry.single),
        .zero_point_i(desc_zero_point),
        .lo_i        (desc_lo),
        .hi_i        (desc_hi),
        .scaled_o    (scaled[l*32 +: 32]),
        .result_o    (result[l*32 +: 32])
      );
    end
  end

  //////////////////////
  // Passes under way //
  //////////////////////

  if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial_passes
    localparam int unsigned CountW = $clog2(tw_cfg_pkg::PassCycles);
    logic [CountW-1:0] count_q;
    logic              active_q, pass_done, unused_valid;
    assign pass_done    = active_q && count_q == '0;
    assign valid_q      = '0;
    assign unused_valid = ^valid_q;
    assign scaled_valid = pass_done;
    assign scaled_pass  = pass8_q;
    assign valid_o      = pass_done && (pass8_q.kind == KindFinal || pass8_q.kind == KindSum);
    assign busy_o       = active_q || operand_valid;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) active_q <= 1'b0;
      else if (entry_valid) active_q <= 1'b1;
      else if (pass_done) active_q <= 1'b0;
    end
    always_ff @(posedge clk_i) begin
      count_q <= entry_valid ? CountW'(tw_cfg_pkg::PassCycles - 1) : count_q - 1'b1;
      if (entry_valid) pass8_q <= entry;
    end
    `TW_ASSERT(LanesFree_A, !(entry_valid && active_q && !pass_done))
  end else begin : gen_parallel_passes
    pass_t pass4_q, pass5_q, pass6_q, pass7_q;
    assign busy_o       = (|valid_q) || operand_valid;
    assign scaled_valid = valid_q[7];
    assign scaled_pass  = pass7_q;
    assign valid_o      = valid_q[8];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        valid_q <= '0;
      end else begin
        valid_q <= {valid_q[7] && (pass7_q.kind == KindFinal || pass7_q.kind == KindSum), valid_q[6:4], entry_valid};
      end
    end
    always_ff @(posedge clk_i) begin
      {pass8_q, pass7_q, pass6_q, pass5_q, pass4_q} <= {pass7_q, pass6_q, pass5_q, pass4_q, entry};
    end
  end

  // Operand a of a quantized add waits for operand b.
  always_ff @(posedge clk_i) begin
    if (scaled_valid && scaled_pass.kind == KindA) scaled_a_q <= scaled;
  end

  assign result_o   = result;
  assign slice_o    = pass8_q.slice;
  assign dst_o      = pass8_q.dst;
  assign at_o       = pass8_q.at;
  assign last_o     = pass8_q.last;
  assign row_last_o = pass8_q.row_last;
  assign push_o     = pass8_q.push;

  ////////////////
  // Assertions //
  ////////////////

  // The lanes take one pass at a time: nothing is issued when a sum enters.
  `TW_ASSERT(OneEntry_A, !(sum_entry && operand_valid))
  `TW_ASSERT(ResultIsFinal_A, !valid_o || pass8_q.kind == KindFinal || pass8_q.kind == KindSum)

endmodule
