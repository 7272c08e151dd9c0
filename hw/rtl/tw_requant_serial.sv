// tw_requant_lane with a multiplier of two bits a cycle and one adder: takes an operand with load_i, and has the result 48
// cycles later, or without zero point and clamp where raw_i is set. The other inputs stay as they are meanwhile.
//
// The multiplier is recoded into digits of base 4, lowest first; a digit times the operand is added up and shifted out by
// two bits, of which the higher is what rounding needs. So the operand is doubled, or where an odd shift follows not (single)
// or twice (double), and what follows are shifts by two.
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

  localparam int unsigned W = 36;

  // Left shift and doubling; product; its rounding, and in double mode ties away from zero; right shift and its rounding;
  // zero point; bounds: less the bound, cut at zero, and back.
  typedef enum logic [3:0] {
    PhLeft, PhMul, PhRound, PhAway, PhShift, PhLast, PhZero, PhHi, PhHiCut, PhHiBack, PhLo, PhLoCut, PhLoBack, PhDone
  } phase_e;
  phase_e       phase_q;
  logic [33:0]  x_q;
  logic [31:0]  m_q;
  logic [W-1:0] acc_q, row, addend, sum;
  logic [4:0]   left_q, right_q, count_q, left, right;
  logic [1:0]   doublings_q, digit;
  logic         single_q, raw_q, odd_q, carry_q, round_q, carry_in, late, next, shifting, negative, overflow;
  logic         add_word, complement;
  logic [31:0]  word;

  // shift > 0 is a left shift in double mode and the right shift in single mode; both clamped to 31.
  always_comb begin
    left = '0;
    right = '0;
    if (single_i) begin
      if (!shift_i[7]) right = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else if (!shift_i[7]) begin
      left = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else begin
      right = (shift_i[6:5] != 2'b11 || shift_i[4:0] == 5'd0) ? 5'd31 : 5'd0 - shift_i[4:0];
    end
  end

  // The further shift of single mode has the one rounding.
  assign late     = single_q && (odd_q || right_q != '0);
  assign negative = acc_q[W-1];
  assign overflow = !negative && (acc_q[32] || (acc_q[31] && !odd_q));
  assign digit    = m_q[1:0] + {1'b0, carry_q};

  always_comb begin
    case (digit)
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
    if (add_word) addend = {{(W-32){word[31]}}, word};
    if (complement) addend = ~{{(W-32){word[31]}}, word};
    case (phase_q)
      PhMul:    carry_in = digit[1];
      PhRound:  carry_in = !late && (odd_q ? acc_q[0] : round_q);
      // Down by one, in units of the doubled value where it is doubled once more.
      PhAway:   if (!late && (overflow || (negative && (odd_q || right_q != '0)))) addend = {{(W-1){1'b1}}, !odd_q};
      PhLast:   carry_in = round_q;
      // Hi and one are taken off: what is below zero is not above hi.
      PhHiBack: carry_in = negative;
      PhLo:     carry_in = 1'b1;
      default:  ;
    endcase
  end
  assign sum      = acc_q + addend + W'(carry_in);
  assign shifting = (phase_q == PhMul && !count_q[4]) || (phase_q == PhShift && right_q != '0);

  always_comb begin
    case (phase_q)
      PhLeft:  next = left_q == '0 && !doublings_q[1];
      PhMul:   next = count_q[4];
      PhShift: next = right_q[4:1] == '0;
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
      x_q         <= {{2{x_i[31]}}, x_i};
      left_q      <= left;
      odd_q       <= right[0];
      // Shifts by two that are left after the product.
      right_q     <= {1'b0, right[4:1]} + {4'd0, right[0] && !single_i};
      doublings_q <= !right[0] ? 2'd1 : (single_i ? 2'd0 : 2'd2);
      single_q    <= single_i;
      raw_q       <= raw_i;
    end else if (phase_q == PhLeft) begin
      if (left_q[4:2] != '0) begin
        x_q    <= {{2{x_q[27]}}, x_q[27:0], 4'd0};
        left_q <= left_q - 5'd4;
      end else if (left_q != '0) begin
        x_q    <= {{2{x_q[30]}}, x_q[30:0], 1'b0};
        left_q <= left_q - 5'd1;
      end else if (doublings_q != '0) begin
        x_q         <= {x_q[32:0], 1'b0};
        doublings_q <= doublings_q - 2'd1;
      end
    end else if (phase_q == PhShift && right_q != '0) begin
      right_q <= right_q - 5'd1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      m_q     <= multiplier_i;
      carry_q <= 1'b0;
      count_q <= '0;
    end else if (phase_q == PhMul) begin
      m_q     <= {{2{m_q[31]}}, m_q[31:2]};
      carry_q <= m_q[1] || (m_q[0] && carry_q);
      count_q <= count_q + 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (load_i || (phase_q == PhHiCut && !negative) || (phase_q == PhLoCut && negative)) acc_q <= '0;
    else if (phase_q != PhLeft && phase_q != PhDone) acc_q <= shifting ? {{2{sum[W-1]}}, sum[W-1:2]} : sum;
    if (load_i || (phase_q == PhRound && !late)) round_q <= 1'b0;
    else if (shifting) round_q <= sum[1];
  end

  assign result_o = acc_q[31:0];

endmodule
