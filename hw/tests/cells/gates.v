// Yosys's own gates, as far as models of cells use them.
module \$_TBUF_ (
  input  A, E,
  output Y
);
  assign Y = E ? A : 1'bz;
endmodule
