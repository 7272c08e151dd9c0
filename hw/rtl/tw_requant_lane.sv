// One lane of the deep vector operations: scales a 32-bit value by a multiplier and a shift as num.rs says, in two
// halves. Stage 1 takes the operand after bias, product or left shift; the scaled value is ready in stage 4, with zero
// point and clamp in stage 5.
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

  logic [31:0] x_q, m_q;
  logic [4:0]  left, right;
  logic [4:0]  right1_q, right2_q, right3_q;
  logic        single1_q, single2_q, single3_q;
  logic        overflow1;
  logic        overflow2_q;
  logic [63:0] product_q, rounded;
  logic [32:0] high_q;
  logic [34:0] rounded2;
  // One less than half of what is shifted out; the other one is the carry, which ties of a negative value in double mode lack.
  logic [30:0] half_q;
  logic        carry;
  logic [32:0] shifted;
  logic [32:0] sum;

  // shift > 0 is a left shift in double mode and the right shift in single mode; both clamped to 31.
  always_comb begin
    left = '0;
    right = '0;
    if (!en_i[1]) begin
    end else if (single_i) begin
      if (!shift_i[7]) right = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else if (!shift_i[7]) begin
      left = (|shift_i[6:5]) ? 5'd31 : shift_i[4:0];
    end else begin
      // -shift, at most 31; -32 and below have bits 6 and 5 not all ones, or are exactly -32.
      right = (shift_i[6:5] != 2'b11 || shift_i[4:0] == 5'd0) ? 5'd31 : 5'd0 - shift_i[4:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i[1]) begin
      x_q       <= x_i << left;
      m_q       <= multiplier_i;
      right1_q  <= right;
      single1_q <= single_i;
    end
  end

  assign overflow1 = x_q == 32'h8000_0000 && m_q == 32'h8000_0000;

  always_ff @(posedge clk_i) begin
    if (en_i[2]) begin
      product_q   <= {{32{x_q[31]}}, x_q} * {{32{m_q[31]}}, m_q};
      right2_q    <= right1_q;
      single2_q   <= single1_q;
      overflow2_q <= overflow1;
    end
  end

  // Half of 2^31 is added but in single mode with a further shift, whose one rounding comes later.
  assign rounded = !en_i[3] ? '0 : product_q + ((single2_q && right2_q != 5'd0) ? 64'd0 : 64'h4000_0000);

  always_ff @(posedge clk_i) begin
    if (en_i[3]) begin
      // Only the product of two least values passes 32 bits: it saturates, but for a single-mode shift that brings it back.
      high_q    <= (overflow2_q && !(single2_q && right2_q != 5'd0)) ? 33'h0_7fff_ffff : rounded[63:31];
      right3_q  <= right2_q;
      half_q    <= right2_q == 5'd0 ? '0 : (31'd1 << (right2_q - 5'd1)) - 31'd1;
      single3_q <= single2_q;
    end
  end

  always_comb begin
    rounded2 = 35'd0;
    carry = 1'b0;
    shifted = 33'd0;
    if (en_i[4]) begin
      carry = right3_q != 5'd0 && (!high_q[32] || single3_q);
      rounded2 = {high_q[32], high_q, 1'b1} + {3'd0, half_q, carry};
      shifted = 33'($signed(rounded2[34:1]) >>> right3_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i[4]) scaled_o <= shifted[31:0];
  end

  assign sum = !en_i[5] ? '0 : {scaled_o[31], scaled_o} + {zero_point_i[31], zero_point_i};
  always_ff @(posedge clk_i) begin
    if (en_i[5]) begin
      if ($signed(sum) > $signed({hi_i[31], hi_i})) begin
        result_o <= ($signed(hi_i) < $signed(lo_i)) ? lo_i : hi_i;
      end else begin
        result_o <= ($signed(sum) < $signed({lo_i[31], lo_i})) ? lo_i : sum[31:0];
      end
    end
  end

  logic unused;
  assign unused = ^{rounded[30:0], shifted[32], rounded2[0]};

endmodule
