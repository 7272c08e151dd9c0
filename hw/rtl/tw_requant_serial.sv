`include "tw_assert.svh"

// Serial requantize lane: the function of tw_requant_lane on one adder, two bits of the multiplier a cycle.
//
// load_i takes an operand; the result is ready 48 cycles later, with raw_i without zero point and bounds. All other
// inputs must stay stable meanwhile.
//
// The multiplier is recoded into digits of base 4, lowest first. Each cycle adds a digit times the operand and shifts
// the sum right by two bits; the higher of these bits is kept for rounding. Shifts go by two bits, so the operand is
// doubled before: once for an even shift, and for an odd one not at all (single mode) or twice (double mode).
module tw_requant_serial (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        load_i,
  input  logic [31:0] x_i,
  input  logic [31:0] multiplier_i,
  input  logic [7:0]  shift_i,
  input  logic        single_i,
  input  logic        raw_i,
  input  logic [31:0] zero_point_i,
  input  logic [31:0] lo_i,
  input  logic [31:0] hi_i,
  output logic [31:0] result_o
);

  localparam int unsigned AccW = 36;

  // Left shift and doubling; product; its rounding, and in double mode ties away from zero; right shift and its
  // rounding; zero point. A bound is applied by subtracting it, replacing what is beyond it by zero, and adding it
  // again.
  typedef enum logic [3:0] {
    PhLeft, PhMul, PhRound, PhAway, PhShift, PhLast, PhZero, PhHi, PhHiCut, PhHiBack, PhLo, PhLoCut, PhLoBack, PhDone
  } phase_e;
  phase_e          phase_q;
  logic [33:0]     x_q;
  logic [31:0]     multiplier_q;
  logic [AccW-1:0] acc_q, row, addend, sum;
  logic [4:0]      left_shift_q, right_shifts_q, count_q, left_shift, right_shift;
  logic [1:0]      doublings_q, digit;
  logic            single_q, raw_q, odd_shift_q, carry_q, round_q, carry_in, rounds_late, next, shifting, negative, overflow;
  logic            add_word, complement;
  logic [31:0]     word;

  // A positive shift_i is a left shift in double mode and a right shift in single mode. Both are clamped to 31.
  always_comb begin
    left_shift = '0;
    right_shift = '0;
    if (single_i) begin
      if (!shift_i[7]) right_shift = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else if (!shift_i[7]) begin
      left_shift = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else begin
      right_shift = (shift_i[6:5] != 2'b11 || shift_i[4:0] == 5'd0) ? 5'd31 : 5'd0 - shift_i[4:0];
    end
  end

  // In single mode with a further shift, only that shift rounds.
  assign rounds_late = single_q && (odd_shift_q || right_shifts_q != '0);
  assign negative    = acc_q[AccW-1];
  assign overflow    = !negative && (acc_q[32] || (acc_q[31] && !odd_shift_q));
  assign digit       = multiplier_q[1:0] + {1'b0, carry_q};

  always_comb begin
    unique case (digit)
      2'b00:   row = '0;
      2'b01:   row = {{2{x_q[33]}}, x_q};
      2'b10:   row = ~{x_q[33], x_q, 1'b0};
      default: row = ~{{2{x_q[33]}}, x_q};
    endcase
  end

  always_comb begin
    word = zero_point_i;
    if (phase_q == PhHi || phase_q == PhHiBack) word = hi_i;
    if (phase_q == PhLo || phase_q == PhLoBack) word = lo_i;
  end
  assign add_word   = phase_q == PhZero || phase_q == PhHiBack || phase_q == PhLoBack;
  assign complement = phase_q == PhHi || phase_q == PhLo;
  always_comb begin
    addend = '0;
    carry_in = 1'b0;
    if (phase_q == PhMul) addend = row;
    if (add_word) addend = {{(AccW-32){word[31]}}, word};
    if (complement) addend = ~{{(AccW-32){word[31]}}, word};
    unique case (phase_q)
      PhMul:    carry_in = digit[1];
      PhRound:  carry_in = !rounds_late && (odd_shift_q ? acc_q[0] : round_q);
      // Down by one; by two if the value is doubled once more
      PhAway: begin
        if (!rounds_late && (overflow || (negative && (odd_shift_q || right_shifts_q != '0)))) begin
          addend = {{(AccW-1){1'b1}}, !odd_shift_q};
        end
      end
      PhLast:   carry_in = round_q;
      // hi and one were subtracted: a negative value is not above hi.
      PhHiBack: carry_in = negative;
      PhLo:     carry_in = 1'b1;
      default:  ;
    endcase
  end
  assign sum      = acc_q + addend + AccW'(carry_in);
  assign shifting = (phase_q == PhMul && !count_q[4]) || (phase_q == PhShift && right_shifts_q != '0);

  always_comb begin
    unique case (phase_q)
      PhLeft:  next = left_shift_q == '0 && !doublings_q[1];
      PhMul:   next = count_q[4];
      PhShift: next = right_shifts_q[4:1] == '0;
      default: next = phase_q != PhDone;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) phase_q <= PhDone;
    else if (load_i) phase_q <= PhLeft;
    else if (phase_q == PhLast && raw_q) phase_q <= PhDone;
    else if (next) phase_q <= phase_e'(phase_q + 4'd1);
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      x_q          <= {{2{x_i[31]}}, x_i};
      left_shift_q <= left_shift;
      odd_shift_q  <= right_shift[0];
      // Shifts by two bits that follow the product
      right_shifts_q <= {1'b0, right_shift[4:1]} + {4'd0, right_shift[0] && !single_i};
      doublings_q    <= !right_shift[0] ? 2'd1 : (single_i ? 2'd0 : 2'd2);
      single_q       <= single_i;
      raw_q          <= raw_i;
    end else if (phase_q == PhLeft) begin
      if (left_shift_q[4:2] != '0) begin
        x_q          <= {{2{x_q[27]}}, x_q[27:0], 4'd0};
        left_shift_q <= left_shift_q - 5'd4;
      end else if (left_shift_q != '0) begin
        x_q          <= {{2{x_q[30]}}, x_q[30:0], 1'b0};
        left_shift_q <= left_shift_q - 5'd1;
      end else if (doublings_q != '0) begin
        x_q         <= {x_q[32:0], 1'b0};
        doublings_q <= doublings_q - 2'd1;
      end
    end else if (phase_q == PhShift && right_shifts_q != '0) begin
      right_shifts_q <= right_shifts_q - 5'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      multiplier_q <= multiplier_i;
      carry_q      <= 1'b0;
      count_q      <= '0;
    end else if (phase_q == PhMul) begin
      multiplier_q <= {{2{multiplier_q[31]}}, multiplier_q[31:2]};
      carry_q      <= multiplier_q[1] || (multiplier_q[0] && carry_q);
      count_q      <= count_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_i || (phase_q == PhHiCut && !negative) || (phase_q == PhLoCut && negative)) acc_q <= '0;
    else if (phase_q != PhLeft && phase_q != PhDone) acc_q <= shifting ? {{2{sum[AccW-1]}}, sum[AccW-1:2]} : sum;
    if (load_i || (phase_q == PhRound && !rounds_late)) round_q <= 1'b0;
    else if (shifting) round_q <= sum[1];
  end

  assign result_o = acc_q[31:0];

  `TW_ASSERT(LoadWhenFree_A, !load_i || phase_q == PhDone)

endmodule
