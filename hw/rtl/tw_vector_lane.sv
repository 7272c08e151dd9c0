// Lane of the simple vector operations: one element a cycle. Lookups are done outside, in tw_vector.
module tw_vector_lane (
  input  logic        en_i,
  input  logic [4:0]  op_i,
  // The adder subtracts: set for all operations except add
  input  logic        subtract_i,
  // The result saturates to eight bits
  input  logic        narrow_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  // Lower bound of a clip; its upper bound is b_i
  input  logic [31:0] lo_i,
  // The upper bound is below the lower bound, which then is the result
  input  logic        none_i,

  // Multiply-accumulate: the destination's old value, and the operands less their zero points
  input  logic [31:0] old_i,
  input  logic [8:0]  da_i,
  input  logic [8:0]  db_i,
  output logic [31:0] result_o,
  // Result of a multiply-accumulate
  output logic [31:0] mac_o
);

  // One adder gives the sum or the difference; the sign of the difference says whether a is less than b.
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

  // Whether a value exceeds eight bits. For operands this is computed in parallel to the adder.
  function automatic logic passes(input logic [24:0] high);
    passes = high != {25{high[24]}};
  endfunction

  // `keep` stops synthesis tools from testing the selected value instead, which would be late.
  (* keep *)
  logic over_a, over_b, over_lo;
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
