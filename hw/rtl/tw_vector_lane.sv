// One lane of the simple vector operations but lookups.
module tw_vector_lane (
  input  logic        en_i,
  input  logic [4:0]  op_i,
  // All but a sum look at the difference.
  input  logic        subtract_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  // Of a clip b is the upper bound.
  input  logic [31:0] lo_i,
  // The upper bound is below the lower one, which then is the result.
  input  logic        none_i,
  // Multiply-accumulate: the destination's element, and the zero points.
  input  logic [31:0] old_i,
  input  logic [7:0]  zero_a_i,
  input  logic [7:0]  zero_b_i,
  output logic [31:0] result_o,
  // Of a multiply-accumulate.
  output logic [31:0] mac_o
);

  // One adder: the sum, or the difference, whose sign says what is less.
  logic        less;
  logic [32:0] sum;

  logic [8:0]  da, db;
  logic [17:0] product;
  always_comb begin
    da = 'x;
    db = 'x;
    product = 'x;
    mac_o = 'x;
    if (tw_cfg_pkg::VectorMac != 0 && en_i && op_i == tw_isa_pkg::VecMac) begin
      da = {a_i[7], a_i[7:0]} - {zero_a_i[7], zero_a_i};
      db = {b_i[7], b_i[7:0]} - {zero_b_i[7], zero_b_i};
      product = {{9{da[8]}}, da} * {{9{db[8]}}, db};
      mac_o = old_i + {{14{product[17]}}, product};
    end
  end

  always_comb begin
    result_o = 'x;
    sum = 'x;
    less = 'x;
    if (en_i) begin
      sum = {a_i[31], a_i} + ({b_i[31], b_i} ^ {33{subtract_i}}) + {32'd0, subtract_i};
      less = sum[32];
      case (op_i)
        tw_isa_pkg::VecMin: result_o = less ? a_i : b_i;
        tw_isa_pkg::VecMax: result_o = less ? b_i : a_i;
        tw_isa_pkg::VecAdd: result_o = sum[31:0];
        tw_isa_pkg::VecSub: result_o = sum[31:0];
        // Alone in its expression: beside an unsigned operand the shift would not keep the sign.
        tw_isa_pkg::VecShr: if (tw_cfg_pkg::VectorShift != 0) result_o = $signed(a_i) >>> b_i[4:0];
        tw_isa_pkg::VecShl: result_o = tw_cfg_pkg::VectorShift != 0 ? a_i << b_i[4:0] : a_i;
        tw_isa_pkg::VecClip: begin
          result_o = less ? a_i : b_i;
          if (none_i || $signed(a_i) < $signed(lo_i)) result_o = lo_i;
        end
        default: result_o = a_i;
      endcase
    end
  end

endmodule
