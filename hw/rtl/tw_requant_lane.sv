// Requantize lane: scales a 32-bit value by a multiplier and a shift. The arithmetic is that of hw/src/num.rs.
//
//   stage 1   left shift; the operand already has its bias, or is a product
//         2   product
//         3   rounding of the product
//         4   right shift and its rounding: scaled_o
//         5   zero point and bounds: result_o
module tw_requant_lane (
  input  logic        clk_i,
  input  logic [5:1]  en_i,
  input  logic [31:0] x_i,
  input  logic [31:0] multiplier_i,
  input  logic [7:0]  shift_i,
  input  logic        single_i,
  input  logic [31:0] zero_point_i,
  input  logic [31:0] lo_i,
  input  logic [31:0] hi_i,
  output logic [31:0] scaled_o,
  output logic [31:0] result_o
);

  logic [31:0] x_q, multiplier_q;
  logic [4:0]  left_shift, right_shift;
  logic [4:0]  right1_q, right2_q, right3_q;
  logic        single1_q, single2_q, single3_q;
  logic        overflow1;
  logic        overflow2_q;
  logic [63:0] product_q, rounded;
  logic [32:0] product_high_q;
  logic [34:0] rounded_high;
  // Half of the last place, less one. The carry adds the one, except for ties of a negative value in double mode.
  logic [30:0] half_less_one_q;
  logic        round_carry;
  logic [32:0] shifted;
  logic [32:0] with_zero_point;

  // A positive shift_i is a left shift in double mode and a right shift in single mode. Both are clamped to 31.
  always_comb begin
    left_shift = '0;
    right_shift = '0;
    if (!en_i[1]) begin
    end else if (single_i) begin
      if (!shift_i[7]) right_shift = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else if (!shift_i[7]) begin
      left_shift = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else begin
      // -shift_i, at most 31. For -32 and below, bits 6 and 5 are not both set, or bits 4 to 0 are zero.
      right_shift = (shift_i[6:5] != 2'b11 || shift_i[4:0] == 5'd0) ? 5'd31 : 5'd0 - shift_i[4:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i[1]) begin
      x_q          <= x_i << left_shift;
      multiplier_q <= multiplier_i;
      right1_q     <= right_shift;
      single1_q    <= single_i;
    end
  end

  assign overflow1 = x_q == 32'h8000_0000 && multiplier_q == 32'h8000_0000;

  always_ff @(posedge clk_i) begin
    if (en_i[2]) begin
      product_q   <= {{32{x_q[31]}}, x_q} * {{32{multiplier_q[31]}}, multiplier_q};
      right2_q    <= right1_q;
      single2_q   <= single1_q;
      overflow2_q <= overflow1;
    end
  end

  // Rounding adds half of 2^31, except in single mode with a further shift, which rounds only once, later.
  assign rounded = !en_i[3] ? '0 : product_q + ((single2_q && right2_q != 5'd0) ? 64'd0 : 64'h4000_0000);

  always_ff @(posedge clk_i) begin
    if (en_i[3]) begin
      // Only the product of the two smallest values exceeds 32 bits. It saturates, unless a single-mode shift follows.
      product_high_q  <= (overflow2_q && !(single2_q && right2_q != 5'd0)) ? 33'h0_7fff_ffff : rounded[63:31];
      right3_q        <= right2_q;
      half_less_one_q <= right2_q == 5'd0 ? '0 : (31'd1 << (right2_q - 5'd1)) - 31'd1;
      single3_q       <= single2_q;
    end
  end

  always_comb begin
    rounded_high = 35'd0;
    round_carry = 1'b0;
    shifted = 33'd0;
    if (en_i[4]) begin
      round_carry = right3_q != 5'd0 && (!product_high_q[32] || single3_q);
      rounded_high = {product_high_q[32], product_high_q, 1'b1} + {3'd0, half_less_one_q, round_carry};
      shifted = 33'($signed(rounded_high[34:1]) >>> right3_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i[4]) scaled_o <= shifted[31:0];
  end

  assign with_zero_point = !en_i[5] ? '0 : {scaled_o[31], scaled_o} + {zero_point_i[31], zero_point_i};
  always_ff @(posedge clk_i) begin
    if (en_i[5]) begin
      if ($signed(with_zero_point) > $signed({hi_i[31], hi_i})) begin
        result_o <= ($signed(hi_i) < $signed(lo_i)) ? lo_i : hi_i;
      end else begin
        result_o <= ($signed(with_zero_point) < $signed({lo_i[31], lo_i})) ? lo_i : with_zero_point[31:0];
      end
    end
  end

  logic unused;
  assign unused = ^{rounded[30:0], shifted[32], rounded_high[0]};

endmodule
