// One lane of the simple vector operations.
module tw_vector_lane (
  input  logic        en_i,
  input  logic [4:0]  op_i,
  input  logic [31:0] a_i,
  input  logic [31:0] b_i,
  input  logic [31:0] lo_i,
  input  logic [31:0] hi_i,
  output logic [31:0] result_o
);

  logic less;
  assign less = $signed(a_i) < $signed(b_i);

  always_comb begin
    result_o = '0;
    if (en_i) case (op_i)
      tw_isa_pkg::VecMin: result_o = less ? a_i : b_i;
      tw_isa_pkg::VecMax: result_o = less ? b_i : a_i;
      tw_isa_pkg::VecAdd: result_o = a_i + b_i;
      tw_isa_pkg::VecSub: result_o = a_i - b_i;
      // Alone in its expression: beside an unsigned operand the shift would not keep the sign.
      tw_isa_pkg::VecShr: if (tw_cfg_pkg::VectorShift != 0) result_o = $signed(a_i) >>> b_i[4:0];
      tw_isa_pkg::VecShl: result_o = tw_cfg_pkg::VectorShift != 0 ? a_i << b_i[4:0] : a_i;
      tw_isa_pkg::VecClip: begin
        result_o = ($signed(a_i) > $signed(hi_i)) ? hi_i : a_i;
        if ($signed(result_o) < $signed(lo_i)) result_o = lo_i;
      end
      default: result_o = a_i;
    endcase
  end

endmodule
