// The deep vector operations on the requantize lanes, stages 3 to 8 of the vector unit: requantize, product, and the sum
// of two int8 rows, whose operands go through the lanes one after the other and then their sum, five cycles after the first.
// Serial lanes take one pass after the other. A second stage before the lanes makes each stage's number one greater.
module tw_vector_deep #(
  parameter int unsigned SliceW = 1,
  // Channels of a slice.
  parameter int unsigned Channels = 1,
  localparam int unsigned IndexW = tw_cfg_pkg::VecW
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // A pass: a slice of two rows, the parameters of its channels and where the result goes.
  input  logic              valid_i,
  input  logic [4:0]        op_i,
  input  logic              single_i,
  input  logic [1:0]        dst_i,
  input  logic [IndexW-1:0] at_i,
  input  logic              last_i,
  input  logic              row_last_i,
  input  logic [SliceW-1:0] slice_i,
  // Of a sum's two passes, the second.
  input  logic              second_i,
  input  logic [3:0]        push_i,
  input  logic [tw_cfg_pkg::RequantLanes*32-1:0] a_i,
  input  logic [tw_cfg_pkg::RequantLanes*32-1:0] b_i,
  input  logic [Channels*32-1:0] multiplier_i,
  input  logic [Channels*8-1:0]  shift_i,
  input  logic [tw_isa_pkg::DescriptorBytes*8-1:0] descriptor_i,
  output logic              busy_o,
  // A slice of a row.
  output logic              valid_o,
  output logic [tw_cfg_pkg::RequantLanes*32-1:0] result_o,
  output logic [SliceW-1:0] slice_o,
  output logic [1:0]        dst_o,
  output logic [IndexW-1:0] at_o,
  output logic              last_o,
  output logic              row_last_o,
  output logic [3:0]        push_o
);

  localparam int unsigned LanesR = tw_cfg_pkg::RequantLanes;
  // What a pass through the lanes carries.
  localparam logic [1:0]  KindFinal = 2'd0;
  localparam logic [1:0]  KindA = 2'd1;
  localparam logic [1:0]  KindB = 2'd2;
  localparam logic [1:0]  KindSum = 2'd3;

  typedef struct packed {
    logic              single;
    logic [1:0]        dst;
    logic [IndexW-1:0] at;
    logic              last;
    logic              row_last;
    logic [SliceW-1:0] slice;
    logic [1:0]        kind;
    logic [3:0]        push;
  } pass_t;

  // The descriptor's fields.
  logic [31:0] d_lo, d_hi, d_zero, d_ma, d_mb, d_m;
  logic [7:0]  d_sa, d_sb, d_s, d_left, d_za, d_zb;
  assign d_lo     = descriptor_i[tw_isa_pkg::DescLoLsb +: 32];
  assign d_hi     = descriptor_i[tw_isa_pkg::DescHiLsb +: 32];
  assign d_zero   = descriptor_i[tw_isa_pkg::DescZeroPointLsb +: 32];
  assign d_ma     = descriptor_i[tw_isa_pkg::DescMultiplierALsb +: 32];
  assign d_mb     = descriptor_i[tw_isa_pkg::DescMultiplierBLsb +: 32];
  assign d_m      = descriptor_i[tw_isa_pkg::DescMultiplierLsb +: 32];
  assign d_sa     = descriptor_i[tw_isa_pkg::DescShiftALsb +: 8];
  assign d_sb     = descriptor_i[tw_isa_pkg::DescShiftBLsb +: 8];
  assign d_s      = descriptor_i[tw_isa_pkg::DescShiftLsb +: 8];
  assign d_left   = descriptor_i[tw_isa_pkg::DescLeftShiftLsb +: 8];
  assign d_za     = descriptor_i[tw_isa_pkg::DescZeroALsb +: 8];
  assign d_zb     = descriptor_i[tw_isa_pkg::DescZeroBLsb +: 8];

  // Stage k's pass stands beside what entered the lanes k - 3 cycles ago; in serial lanes it stands in 8 all the while.
  logic                 entry_valid, sum_entry, scaled_valid;
  pass_t                pass3, entry, pass8_q, scaled_pass;
  logic [8:4]           valid_q;
  logic [LanesR*32-1:0] x, multiplier, scaled, result, hold_q;
  logic [LanesR*8-1:0]  shift;

  assign pass3.single   = single_i;
  assign pass3.dst      = dst_i;
  assign pass3.at       = at_i;
  assign pass3.last     = last_i;
  assign pass3.row_last = row_last_i;
  assign pass3.slice    = slice_i;
  assign pass3.kind     = op_i != tw_isa_pkg::VecQadd ? KindFinal : (second_i ? KindB : KindA);
  assign pass3.push     = push_i;

  // Operands before the lanes, of which a second stage before them keeps what there is before they are scaled.
  logic                 operand_valid;
  pass_t                operand_pass;
  logic [LanesR*32-1:0] operand_x_d, operand_multiplier_d, operand_x, operand_multiplier;
  logic [LanesR*8-1:0]  operand_shift_d, operand_shift;
  if (tw_cfg_pkg::VectorStages < 2) begin : gen_operands
    assign operand_valid      = valid_i;
    assign operand_pass       = pass3;
    assign operand_x          = operand_x_d;
    assign operand_multiplier = operand_multiplier_d;
    assign operand_shift      = operand_shift_d;
  end else begin : gen_registered_operands
    logic                 operand_valid_q;
    pass_t                pass_q;
    logic [LanesR*32-1:0] x_q, multiplier_q;
    logic [LanesR*8-1:0]  shift_q;
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

  assign sum_entry   = scaled_valid && scaled_pass.kind == KindB;
  assign entry_valid = sum_entry || operand_valid;
  always_comb begin
    entry = sum_entry ? scaled_pass : operand_pass;
    if (sum_entry) entry.kind = KindSum;
  end

  for (genvar l = 0; l < LanesR; l++) begin : gen_requant_lane
    logic [31:0] av, bv, xl, ml;
    logic [7:0]  sl, a8, b8;
    logic [8:0]  da, db, dx;
    logic [17:0] prod;
    assign av = a_i[l*32 +: 32];
    assign bv = b_i[l*32 +: 32];
    assign a8 = av[7:0];
    assign b8 = bv[7:0];
    always_comb begin
      da = 'x;
      db = 'x;
      prod = 'x;
      dx = 'x;
      if (valid_i) begin
        da = {a8[7], a8} - {d_za[7], d_za};
        db = {b8[7], b8} - {d_zb[7], d_zb};
        prod = {{9{da[8]}}, da} * {{9{db[8]}}, db};
        dx = pass3.kind == KindA ? da : db;
      end
    end
    always_comb begin
      xl = 'x;
      ml = 'x;
      sl = 'x;
      if (valid_i) begin
        xl = av + bv;
        ml = multiplier_i[(l % Channels)*32 +: 32];
        sl = shift_i[(l % Channels)*8 +: 8];
      end
      if (tw_cfg_pkg::VectorMul != 0 && valid_i && op_i == tw_isa_pkg::VecMul) begin
        xl = {{14{prod[17]}}, prod};
        ml = d_m;
        sl = d_s;
      end
      if (tw_cfg_pkg::VectorQadd != 0 && valid_i && op_i == tw_isa_pkg::VecQadd) begin
        xl = {{23{dx[8]}}, dx} << d_left[4:0];
        ml = pass3.kind == KindA ? d_ma : d_mb;
        sl = pass3.kind == KindA ? d_sa : d_sb;
      end
    end
    assign operand_x_d[l*32 +: 32] = xl;
    assign operand_multiplier_d[l*32 +: 32] = ml;
    assign operand_shift_d[l*8 +: 8] = sl;
    always_comb begin
      x[l*32 +: 32] = 'x;
      multiplier[l*32 +: 32] = 'x;
      shift[l*8 +: 8] = 'x;
      if (operand_valid) begin
        x[l*32 +: 32] = operand_x[l*32 +: 32];
        multiplier[l*32 +: 32] = operand_multiplier[l*32 +: 32];
        shift[l*8 +: 8] = operand_shift[l*8 +: 8];
      end
      if (tw_cfg_pkg::VectorQadd != 0 && sum_entry) begin
        x[l*32 +: 32] = hold_q[l*32 +: 32] + scaled[l*32 +: 32];
        multiplier[l*32 +: 32] = d_m;
        shift[l*8 +: 8] = d_s;
      end
    end

    if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial
      tw_requant_serial u_lane (
        .clk_i, .rst_ni, .load_i(entry_valid), .x_i(x[l*32 +: 32]), .multiplier_i(multiplier[l*32 +: 32]),
        .shift_i(shift[l*8 +: 8]), .single_i(entry.single), .raw_i(entry.kind == KindA || entry.kind == KindB),
        .zero_point_i(d_zero), .lo_i(d_lo), .hi_i(d_hi), .result_o(result[l*32 +: 32])
      );
      assign scaled[l*32 +: 32] = result[l*32 +: 32];
    end else begin : gen_parallel
      tw_requant_lane u_lane (
        .clk_i, .en_i({valid_q[7:4], entry_valid}), .x_i(x[l*32 +: 32]), .multiplier_i(multiplier[l*32 +: 32]),
        .shift_i(shift[l*8 +: 8]), .single_i(entry.single), .zero_point_i(d_zero), .lo_i(d_lo), .hi_i(d_hi),
        .scaled_o(scaled[l*32 +: 32]), .result_o(result[l*32 +: 32])
      );
    end
  end

  if (tw_cfg_pkg::RequantSerial != 0) begin : gen_serial_passes
    localparam int unsigned CountW = $clog2(tw_cfg_pkg::PassCycles);
    logic [CountW-1:0] count_q;
    logic              active_q, pass_done;
    assign pass_done    = active_q && count_q == '0;
    logic              unused_valid;
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
  always_ff @(posedge clk_i) begin
    if (scaled_valid && scaled_pass.kind == KindA) hold_q <= scaled;
  end

  assign result_o   = result;
  assign slice_o    = pass8_q.slice;
  assign dst_o      = pass8_q.dst;
  assign at_o       = pass8_q.at;
  assign last_o     = pass8_q.last;
  assign row_last_o = pass8_q.row_last;
  assign push_o     = pass8_q.push;

endmodule
