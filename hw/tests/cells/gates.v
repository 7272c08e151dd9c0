// Yosys's own gates, those that the models of cells use.
module \$_TBUF_ (
  input  A, E,
  output Y
);
  assign Y = E ? A : 1'bz;
endmodule

module \$lut #(parameter WIDTH = 4, parameter [2 ** WIDTH - 1:0] LUT = 0) (
  input  [WIDTH-1:0] A,
  output Y
);
  assign Y = LUT[A];
endmodule
