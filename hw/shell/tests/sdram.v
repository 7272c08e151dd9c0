module tw_shell(
    input wire clk,
    input wire uart_rx,
    output wire uart_tx,
    output wire sdram_ras_n,
    output wire sdram_cas_n,
    output wire sdram_we_n,
    output wire sdram_dq_oe,
    output wire [12:0] sdram_a,
    output wire [1:0] sdram_ba,
    output wire [1:0] sdram_dqm,
    output wire [15:0] sdram_dq_o,
    input wire [15:0] sdram_dq_i
);
    wire [3:0] all_leds;
    wire [12:0] all_a;
    assign sdram_a = all_a[12:0];
    wire [1:0] all_ba;
    assign sdram_ba = all_ba[1:0];
    wire [3:0] all_dqm;
    assign sdram_dqm = all_dqm[1:0];
    wire [31:0] all_dq_o;
    assign sdram_dq_o = all_dq_o[15:0];
    tw_board board(
        .clk(clk),
        .uart_rx(uart_rx),
        .uart_tx(uart_tx),
        .leds(all_leds),
        .sdram$ras_n(sdram_ras_n),
        .sdram$cas_n(sdram_cas_n),
        .sdram$we_n(sdram_we_n),
        .sdram$dq_oe(sdram_dq_oe),
        .sdram$a(all_a),
        .sdram$ba(all_ba),
        .sdram$dqm(all_dqm),
        .sdram$dq_o(all_dq_o),
        .sdram$dq_i({16'd0, sdram_dq_i})
    );
endmodule


module tw_board$memory$controller(clock,reset,port$request,port$ready,port$write,port$addr,port$len,port$r_valid,port$r_data,port$w_valid,port$w_data,port$w_strb,port$w_take,port$last,port$error,pins$ras_n,pins$cas_n,pins$we_n,pins$a,pins$ba,pins$dqm,pins$dq_o,pins$dq_oe,pins$dq_i,up);

    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  port$request;
    output reg  port$ready;
    input wire  port$write;
    input wire  [39:0] port$addr;
    input wire  [7:0] port$len;
    output reg  port$r_valid;
    output reg  [15:0] port$r_data;
    input wire  port$w_valid;
    input wire  [15:0] port$w_data;
    input wire  [1:0] port$w_strb;
    output reg  port$w_take;
    output reg  port$last;
    output reg  port$error;
    output reg  pins$ras_n;
    output reg  pins$cas_n;
    output reg  pins$we_n;
    output reg  [12:0] pins$a;
    output reg  [1:0] pins$ba;
    output reg  [3:0] pins$dqm;
    output reg  [31:0] pins$dq_o;
    output reg  pins$dq_oe;
    input wire  [31:0] pins$dq_i;
    output reg  up;

    // Constant declarations
    localparam  power_up_pause = 16'h2710;
    localparam  mode_pause = 16'h1;
    localparam  precharge_pause = 16'h1;
    localparam  refresh_pause = 16'h3;
    localparam  activate_pause = 16'h1;
    localparam  row_pauses = 4'h2;
    localparam  read_pauses = 4'h1;
    localparam  write_pauses = 4'h1;
    localparam  refresh_interval = 16'h185;
    localparam  mode = 13'b100000;
    localparam  landing = 8'h8;
    localparam  has_masks = 1'b1;
    localparam  beyond = 40'hfffe000000;
    localparam  place_mask = 32'hffffff;
    localparam  column_mask = 13'b111111111;
    localparam  bank_mask = 2'b11;
    localparam  row_mask = 13'b1111111111111;
    localparam  bytes_log = 8'h1;
    localparam  bits_log = 8'h4;
    localparam  columns_log = 8'h9;
    localparam  rows_log = 8'hb;
    localparam  beat_log = 8'h0;
    localparam  last_at = 6'b0;
    localparam  last_words = 14'b0;
    localparam  all_named = 4'h3;
    localparam  data_mask = 32'hffff;
    localparam  data_bits = 16'h10;
    localparam  top_word = 16'h0;

    // Enums
    localparam ChipState$PowerUp = 0;
    localparam ChipState$FirstPrecharge = 1;
    localparam ChipState$FirstRefreshes = 2;
    localparam ChipState$Mode = 3;
    localparam ChipState$Closed = 4;
    localparam ChipState$Open = 5;

    // Stub signals
    reg  capture$clock;
    reg  [31:0] capture$d;
    wire  [31:0] capture$q;
    reg  [2:0] state$d;
    wire  [2:0] state$q;
    reg  state$clock;
    reg  is_up$d;
    wire  is_up$q;
    reg  is_up$clock;
    reg  [15:0] pause$d;
    wire  [15:0] pause$q;
    reg  pause$clock;
    reg  [3:0] row_pause$d;
    wire  [3:0] row_pause$q;
    reg  row_pause$clock;
    reg  [3:0] word_pause$d;
    wire  [3:0] word_pause$q;
    reg  word_pause$clock;
    reg  [2:0] start_refreshes$d;
    wire  [2:0] start_refreshes$q;
    reg  start_refreshes$clock;
    reg  [15:0] until_refresh$d;
    wire  [15:0] until_refresh$q;
    reg  until_refresh$clock;
    reg  refresh_due$d;
    wire  refresh_due$q;
    reg  refresh_due$clock;
    reg  [31:0] open$d;
    wire  [31:0] open$q;
    reg  open$clock;
    reg  busy$d;
    wire  busy$q;
    reg  busy$clock;
    reg  writes$d;
    wire  writes$q;
    reg  writes$clock;
    reg  outside$d;
    wire  outside$q;
    reg  outside$clock;
    reg  asking$d;
    wire  asking$q;
    reg  asking$clock;
    reg  merging$d;
    wire  merging$q;
    reg  merging$clock;
    reg  [31:0] word$d;
    wire  [31:0] word$q;
    reg  word$clock;
    reg  [5:0] at$d;
    wire  [5:0] at$q;
    reg  at$clock;
    reg  [13:0] to_do$d;
    wire  [13:0] to_do$q;
    reg  to_do$clock;
    reg  [13:0] to_come$d;
    wire  [13:0] to_come$q;
    reg  to_come$clock;
    reg  [7:0] flight$d;
    wire  [7:0] flight$q;
    reg  flight$clock;
    reg  [31:0] came$d;
    wire  [31:0] came$q;
    reg  came$clock;
    reg  [15:0] beat$d;
    wire  [15:0] beat$q;
    reg  beat$clock;
    reg  [2:0] strobes$d;
    wire  [2:0] strobes$q;
    reg  strobes$clock;
    reg  [12:0] a$d;
    wire  [12:0] a$q;
    reg  a$clock;
    reg  [1:0] ba$d;
    wire  [1:0] ba$q;
    reg  ba$clock;
    reg  [3:0] dqm$d;
    wire  [3:0] dqm$q;
    reg  dqm$clock;
    reg  [31:0] dq$d;
    wire  [31:0] dq$q;
    reg  dq$clock;
    reg  drive$d;
    wire  drive$q;
    reg  drive$clock;

    // Local signals
    reg  row_is_open;
    reg  wanted;
    reg  arrived;
    reg  [15:0] next_beat;
    reg  [15:0] bit_place;
    reg  [15:0] byte_place;
    reg  [31:0] data;
    reg  [3:0] named;
    reg  [31:0] named0;
    reg  [31:0] named1;
    reg  [31:0] named2;
    reg  [31:0] named3;
    reg  [31:0] named_bits;
    reg  reading;
    reg  writing;
    reg  written;
    reg  beat_comes;
    reg  beat_goes;
    reg  ends;
    reg  ready;

    // Sub module tw_board$memory$controller$a(d,q,clock);

    // Module arguments
    input wire  [12:0] d;
    output reg  [12:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 13'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$asking(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$at(d,q,clock);

    // Module arguments
    input wire  [5:0] d;
    output reg  [5:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 6'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$ba(d,q,clock);

    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 2'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$beat(d,q,clock);

    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 16'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$busy(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$came(d,q,clock);

    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 32'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$capture(clock,d,q);

    // Module arguments
    input wire  clock;
    input wire  [31:0] d;
    output reg  [31:0] q;

    // Update code (custom)
    initial begin
       q = 32'h0;
    end

    always @(negedge clock) begin
       q <= d;
    end
endmodule tw_board$memory$controller$dq(d,q,clock);

    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 32'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$dqm(d,q,clock);

    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 4'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$drive(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$flight(d,q,clock);

    // Module arguments
    input wire  [7:0] d;
    output reg  [7:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 8'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$is_up(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$merging(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$open(d,q,clock);

    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 32'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$outside(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$pause(d,q,clock);

    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 16'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$refresh_due(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$row_pause(d,q,clock);

    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 4'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$start_refreshes(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 3'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$state(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Enums
    localparam ChipState$PowerUp = 0;
    localparam ChipState$FirstPrecharge = 1;
    localparam ChipState$FirstRefreshes = 2;
    localparam ChipState$Mode = 3;
    localparam ChipState$Closed = 4;
    localparam ChipState$Open = 5;

    // Update code (custom)
    initial begin
       q = 64'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$strobes(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 3'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$to_come(d,q,clock);

    // Module arguments
    input wire  [13:0] d;
    output reg  [13:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 14'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$to_do(d,q,clock);

    // Module arguments
    input wire  [13:0] d;
    output reg  [13:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 14'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$until_refresh(d,q,clock);

    // Module arguments
    input wire  [15:0] d;
    output reg  [15:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 16'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$word(d,q,clock);

    // Module arguments
    input wire  [31:0] d;
    output reg  [31:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 32'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$word_pause(d,q,clock);

    // Module arguments
    input wire  [3:0] d;
    output reg  [3:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 4'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule tw_board$memory$controller$writes(d,q,clock);

    // Module arguments
    input wire  d;
    output reg  q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 1'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

end