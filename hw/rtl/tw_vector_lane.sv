// One lane of the simple vector operations but lookups.
module tw_vector_lane (
  input  logic        en_i,
  input  logic [4:0]  op_i,
  // All but a sum look at the difference.
  input  logic        subtract_i,
  // The result saturates to eight bits.
  input  logic        narrow_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  // Of a clip b is the upper bound.
  input  logic [31:0] lo_i,
  // The upper bound is below the lower one, which then is the result.
  input  logic        none_i,
  // Multiply-accumulate: the destination's element, and the operands less their zero points.
  input  logic [31:0] old_i,
  input  logic [8:0]  da_i,
  input  logic [8:0]  db_i,
  output logic [31:0] result_o,
  // Of a multiply-accumulate.
  output logic [31:0] mac_o
);

  // One adder: the sum, or the difference, whose sign says what is less.
  logic        less;
  logic [32:0] sum;

  logic [17:0] product;
  always_comb begin
    product = 'x;
    mac_o = 'x;
    if (tw_cfg_pkg::VectorMac != 0 && en_i && op_i == tw_isa_pkg::VecMac) begin
      product = {{9{da_i[8]}}, da_i} * {{9{db_i[8]}}, db_i};
      mac_o = old_i + {{14{product[17]}}, product};
    end
  end

  // Whether a value passes eight bits is looked at beside the adder where it can be.
  function automatic logic passes(input logic [24:0] high);
    passes = high != {25{high[24]}};
  endfunction

  // Kept apart: tools else look at what was chosen, and that is late.
  (* keep *)
  logic        over_a, over_b, over_lo;
  always_comb begin
    over_a = 'x;
    over_b = 'x;
    over_lo = 'x;
    if (en_i && narrow_i) begin
      over_a = passes(a_i[31:7]);
      over_b = passes(b_i[31:7]);
      over_lo = passes(lo_i[31:7]);
    end
  end

  logic [31:0] value;
  logic        over;
  always_comb begin
    result_o = 'x;
    value = 'x;
    over = 'x;
    sum = 'x;
    less = 'x;
    if (en_i) begin
      sum = {a_i[31], a_i} + ({b_i[31], b_i} ^ {33{subtract_i}}) + {32'd0, subtract_i};
      less = sum[32];
      value = a_i;
      over = over_a;
      case (op_i)
        tw_isa_pkg::VecMin: if (!less) begin
          value = b_i;
          over = over_b;
        end
        tw_isa_pkg::VecMax: if (less) begin
          value = b_i;
          over = over_b;
        end
        tw_isa_pkg::VecAdd, tw_isa_pkg::VecSub: begin
          value = sum[31:0];
          over = passes(sum[31:7]);
        end
        // Alone in its expression: beside an unsigned operand the shift would not keep the sign.
        tw_isa_pkg::VecShr: if (tw_cfg_pkg::VectorShift != 0) begin
          value = $signed(a_i) >>> b_i[4:0];
          over = passes(value[31:7]);
        end
        tw_isa_pkg::VecShl: if (tw_cfg_pkg::VectorShift != 0) begin
          value = a_i << b_i[4:0];
          over = passes(value[31:7]);
        end
        tw_isa_pkg::VecClip: if (none_i || $signed(a_i) < $signed(lo_i)) begin
          value = lo_i;
          over = over_lo;
        end else if (!less) begin
          value = b_i;
          over = over_b;
        end
        default: ;
      endcase
      result_o = value;
      if (narrow_i && over) result_o = {{25{value[31]}}, {7{!value[31]}}};
    end
  end

endmodule
