module tw_shell(
    input wire clk,
    input wire uart_rx,
    output wire uart_tx
);
    wire [3:0] all_leds;
    tw_board board(
        .clk(clk),
        .uart_rx(uart_rx),
        .uart_tx(uart_tx),
        .leds(all_leds)
    );
endmodule


module tw_board(clk,uart_rx,uart_tx,leds);

    // Module arguments
    input wire  clk;
    input wire  uart_rx;
    output reg  uart_tx;
    output reg  [3:0] leds;

    // Stub signals
    reg  link$clock;
    reg  link$uart_rx;
    wire  link$uart_tx;
    wire  link$from_link$valid;
    wire  [7:0] link$from_link$data;
    reg  link$to_link$valid;
    wire  link$to_link$ready;
    reg  [7:0] link$to_link$data;
    reg  bridge$clock;
    wire  bridge$reset;
    reg  bridge$from_link$valid;
    reg  [7:0] bridge$from_link$data;
    wire  bridge$to_link$valid;
    reg  bridge$to_link$ready;
    wire  [7:0] bridge$to_link$data;
    wire  bridge$regs$valid;
    wire  bridge$regs$write;
    wire  [11:0] bridge$regs$addr;
    wire  [31:0] bridge$regs$wdata;
    reg  [31:0] bridge$regs$rdata;
    reg  bridge$irq;
    reg  bridge$memory_up;
    wire  [2:0] bridge$to_memory$kind;
    wire  bridge$to_memory$valid;
    wire  [7:0] bridge$to_memory$data;
    reg  bridge$to_memory$last;
    wire  bridge$to_memory$commit;
    reg  bridge$from_memory$valid;
    reg  [2:0] bridge$from_memory$kind;
    reg  [7:0] bridge$from_memory$data;
    reg  bridge$from_memory$last;
    wire  bridge$from_memory$take;
    wire  bridge$refused;
    reg  status$clock;
    reg  status$reset;
    reg  status$refused;
    reg  status$from_bridge$valid;
    reg  status$from_bridge$write;
    reg  [11:0] status$from_bridge$addr;
    reg  [31:0] status$from_bridge$wdata;
    wire  [31:0] status$from_bridge$rdata;
    wire  status$to_core$valid;
    wire  status$to_core$write;
    wire  [11:0] status$to_core$addr;
    wire  [31:0] status$to_core$wdata;
    reg  [31:0] status$to_core$rdata;
    wire  [3:0] status$leds;
    reg  memory$clock;
    reg  memory$reset;
    wire  memory$up;
    reg  memory$bus$ar_valid;
    wire  memory$bus$ar_ready;
    reg  memory$bus$ar_id;
    reg  [39:0] memory$bus$ar_addr;
    reg  [7:0] memory$bus$ar_len;
    wire  memory$bus$r_valid;
    wire  memory$bus$r_id;
    wire  [15:0] memory$bus$r_data;
    wire  memory$bus$r_error;
    wire  memory$bus$r_last;
    reg  memory$bus$aw_valid;
    wire  memory$bus$aw_ready;
    reg  [39:0] memory$bus$aw_addr;
    reg  [7:0] memory$bus$aw_len;
    reg  memory$bus$w_valid;
    wire  memory$bus$w_ready;
    reg  [15:0] memory$bus$w_data;
    reg  [1:0] memory$bus$w_strb;
    reg  memory$bus$w_last;
    wire  memory$bus$b_valid;
    wire  memory$bus$b_error;
    wire  memory$to_host$valid;
    wire  [2:0] memory$to_host$kind;
    wire  [7:0] memory$to_host$data;
    wire  memory$to_host$last;
    reg  memory$to_host$take;
    reg  [2:0] memory$from_host$kind;
    reg  memory$from_host$valid;
    reg  [7:0] memory$from_host$data;
    wire  memory$from_host$last;
    reg  memory$from_host$commit;
    reg  core$clock;
    reg  core$reset;
    reg  core$regs$valid;
    reg  core$regs$write;
    reg  [11:0] core$regs$addr;
    reg  [31:0] core$regs$wdata;
    wire  [31:0] core$regs$rdata;
    wire  core$irq;
    wire  core$bus$ar_valid;
    reg  core$bus$ar_ready;
    wire  core$bus$ar_id;
    wire  [39:0] core$bus$ar_addr;
    wire  [7:0] core$bus$ar_len;
    reg  core$bus$r_valid;
    reg  core$bus$r_id;
    reg  [15:0] core$bus$r_data;
    reg  core$bus$r_error;
    reg  core$bus$r_last;
    wire  core$bus$aw_valid;
    reg  core$bus$aw_ready;
    wire  [39:0] core$bus$aw_addr;
    wire  [7:0] core$bus$aw_len;
    wire  core$bus$w_valid;
    reg  core$bus$w_ready;
    wire  [15:0] core$bus$w_data;
    wire  [1:0] core$bus$w_strb;
    wire  core$bus$w_last;
    reg  core$bus$b_valid;
    reg  core$bus$b_error;

    // Sub module instances
    tw_board$link link(
        .clock(link$clock),
        .uart_rx(link$uart_rx),
        .uart_tx(link$uart_tx),
        .from_link$valid(link$from_link$valid),
        .from_link$data(link$from_link$data),
        .to_link$valid(link$to_link$valid),
        .to_link$ready(link$to_link$ready),
        .to_link$data(link$to_link$data)
    );
    tw_board$bridge bridge(
        .clock(bridge$clock),
        .reset(bridge$reset),
        .from_link$valid(bridge$from_link$valid),
        .from_link$data(bridge$from_link$data),
        .to_link$valid(bridge$to_link$valid),
        .to_link$ready(bridge$to_link$ready),
        .to_link$data(bridge$to_link$data),
        .regs$valid(bridge$regs$valid),
        .regs$write(bridge$regs$write),
        .regs$addr(bridge$regs$addr),
        .regs$wdata(bridge$regs$wdata),
        .regs$rdata(bridge$regs$rdata),
        .irq(bridge$irq),
        .memory_up(bridge$memory_up),
        .to_memory$kind(bridge$to_memory$kind),
        .to_memory$valid(bridge$to_memory$valid),
        .to_memory$data(bridge$to_memory$data),
        .to_memory$last(bridge$to_memory$last),
        .to_memory$commit(bridge$to_memory$commit),
        .from_memory$valid(bridge$from_memory$valid),
        .from_memory$kind(bridge$from_memory$kind),
        .from_memory$data(bridge$from_memory$data),
        .from_memory$last(bridge$from_memory$last),
        .from_memory$take(bridge$from_memory$take),
        .refused(bridge$refused)
    );
    tw_board$status status(
        .clock(status$clock),
        .reset(status$reset),
        .refused(status$refused),
        .from_bridge$valid(status$from_bridge$valid),
        .from_bridge$write(status$from_bridge$write),
        .from_bridge$addr(status$from_bridge$addr),
        .from_bridge$wdata(status$from_bridge$wdata),
        .from_bridge$rdata(status$from_bridge$rdata),
        .to_core$valid(status$to_core$valid),
        .to_core$write(status$to_core$write),
        .to_core$addr(status$to_core$addr),
        .to_core$wdata(status$to_core$wdata),
        .to_core$rdata(status$to_core$rdata),
        .leds(status$leds)
    );
    tw_board$memory memory(
        .clock(memory$clock),
        .reset(memory$reset),
        .up(memory$up),
        .bus$ar_valid(memory$bus$ar_valid),
        .bus$ar_ready(memory$bus$ar_ready),
        .bus$ar_id(memory$bus$ar_id),
        .bus$ar_addr(memory$bus$ar_addr),
        .bus$ar_len(memory$bus$ar_len),
        .bus$r_valid(memory$bus$r_valid),
        .bus$r_id(memory$bus$r_id),
        .bus$r_data(memory$bus$r_data),
        .bus$r_error(memory$bus$r_error),
        .bus$r_last(memory$bus$r_last),
        .bus$aw_valid(memory$bus$aw_valid),
        .bus$aw_ready(memory$bus$aw_ready),
        .bus$aw_addr(memory$bus$aw_addr),
        .bus$aw_len(memory$bus$aw_len),
        .bus$w_valid(memory$bus$w_valid),
        .bus$w_ready(memory$bus$w_ready),
        .bus$w_data(memory$bus$w_data),
        .bus$w_strb(memory$bus$w_strb),
        .bus$w_last(memory$bus$w_last),
        .bus$b_valid(memory$bus$b_valid),
        .bus$b_error(memory$bus$b_error),
        .to_host$valid(memory$to_host$valid),
        .to_host$kind(memory$to_host$kind),
        .to_host$data(memory$to_host$data),
        .to_host$last(memory$to_host$last),
        .to_host$take(memory$to_host$take),
        .from_host$kind(memory$from_host$kind),
        .from_host$valid(memory$from_host$valid),
        .from_host$data(memory$from_host$data),
        .from_host$last(memory$from_host$last),
        .from_host$commit(memory$from_host$commit)
    );
    tw_board$core core(
        .clock(core$clock),
        .reset(core$reset),
        .regs$valid(core$regs$valid),
        .regs$write(core$regs$write),
        .regs$addr(core$regs$addr),
        .regs$wdata(core$regs$wdata),
        .regs$rdata(core$regs$rdata),
        .irq(core$irq),
        .bus$ar_valid(core$bus$ar_valid),
        .bus$ar_ready(core$bus$ar_ready),
        .bus$ar_id(core$bus$ar_id),
        .bus$ar_addr(core$bus$ar_addr),
        .bus$ar_len(core$bus$ar_len),
        .bus$r_valid(core$bus$r_valid),
        .bus$r_id(core$bus$r_id),
        .bus$r_data(core$bus$r_data),
        .bus$r_error(core$bus$r_error),
        .bus$r_last(core$bus$r_last),
        .bus$aw_valid(core$bus$aw_valid),
        .bus$aw_ready(core$bus$aw_ready),
        .bus$aw_addr(core$bus$aw_addr),
        .bus$aw_len(core$bus$aw_len),
        .bus$w_valid(core$bus$w_valid),
        .bus$w_ready(core$bus$w_ready),
        .bus$w_data(core$bus$w_data),
        .bus$w_strb(core$bus$w_strb),
        .bus$w_last(core$bus$w_last),
        .bus$b_valid(core$bus$b_valid),
        .bus$b_error(core$bus$b_error)
    );

    // Update code
    always @(*) begin
        link$clock = clk;
        bridge$clock = clk;
        status$clock = clk;
        memory$clock = clk;
        core$clock = clk;
        link$uart_rx = uart_rx;
        uart_tx = link$uart_tx;
        status$reset = bridge$reset;
        memory$reset = bridge$reset;
        core$reset = bridge$reset;
        bridge$irq = core$irq;
        bridge$memory_up = memory$up;
        status$refused = bridge$refused;
        leds = status$leds;
    end

    always @(*) bridge$from_link$valid = link$from_link$valid;
    always @(*) bridge$from_link$data = link$from_link$data;
    always @(*) link$to_link$valid = bridge$to_link$valid;
    always @(*) bridge$to_link$ready = link$to_link$ready;
    always @(*) link$to_link$data = bridge$to_link$data;
    always @(*) status$from_bridge$valid = bridge$regs$valid;
    always @(*) status$from_bridge$write = bridge$regs$write;
    always @(*) status$from_bridge$addr = bridge$regs$addr;
    always @(*) status$from_bridge$wdata = bridge$regs$wdata;
    always @(*) bridge$regs$rdata = status$from_bridge$rdata;
    always @(*) core$regs$valid = status$to_core$valid;
    always @(*) core$regs$write = status$to_core$write;
    always @(*) core$regs$addr = status$to_core$addr;
    always @(*) core$regs$wdata = status$to_core$wdata;
    always @(*) status$to_core$rdata = core$regs$rdata;
    always @(*) memory$from_host$kind = bridge$to_memory$kind;
    always @(*) memory$from_host$valid = bridge$to_memory$valid;
    always @(*) memory$from_host$data = bridge$to_memory$data;
    always @(*) bridge$to_memory$last = memory$from_host$last;
    always @(*) memory$from_host$commit = bridge$to_memory$commit;
    always @(*) bridge$from_memory$valid = memory$to_host$valid;
    always @(*) bridge$from_memory$kind = memory$to_host$kind;
    always @(*) bridge$from_memory$data = memory$to_host$data;
    always @(*) bridge$from_memory$last = memory$to_host$last;
    always @(*) memory$to_host$take = bridge$from_memory$take;
    always @(*) memory$bus$ar_valid = core$bus$ar_valid;
    always @(*) core$bus$ar_ready = memory$bus$ar_ready;
    always @(*) memory$bus$ar_id = core$bus$ar_id;
    always @(*) memory$bus$ar_addr = core$bus$ar_addr;
    always @(*) memory$bus$ar_len = core$bus$ar_len;
    always @(*) core$bus$r_valid = memory$bus$r_valid;
    always @(*) core$bus$r_id = memory$bus$r_id;
    always @(*) core$bus$r_data = memory$bus$r_data;
    always @(*) core$bus$r_error = memory$bus$r_error;
    always @(*) core$bus$r_last = memory$bus$r_last;
    always @(*) memory$bus$aw_valid = core$bus$aw_valid;
    always @(*) core$bus$aw_ready = memory$bus$aw_ready;
    always @(*) memory$bus$aw_addr = core$bus$aw_addr;
    always @(*) memory$bus$aw_len = core$bus$aw_len;
    always @(*) memory$bus$w_valid = core$bus$w_valid;
    always @(*) core$bus$w_ready = memory$bus$w_ready;
    always @(*) memory$bus$w_data = core$bus$w_data;
    always @(*) memory$bus$w_strb = core$bus$w_strb;
    always @(*) memory$bus$w_last = core$bus$w_last;
    always @(*) core$bus$b_valid = memory$bus$b_valid;
    always @(*) core$bus$b_error = memory$bus$b_error;
endmodule // tw_board


module tw_board$bridge(clock,reset,from_link$valid,from_link$data,to_link$valid,to_link$ready,to_link$data,regs$valid,regs$write,regs$addr,regs$wdata,regs$rdata,irq,memory_up,to_memory$kind,to_memory$valid,to_memory$data,to_memory$last,to_memory$commit,from_memory$valid,from_memory$kind,from_memory$data,from_memory$last,from_memory$take,refused);

    // Module arguments
    input wire  clock;
    output reg  reset;
    input wire  from_link$valid;
    input wire  [7:0] from_link$data;
    output wire  to_link$valid;
    input wire  to_link$ready;
    output wire  [7:0] to_link$data;
    output wire  regs$valid;
    output wire  regs$write;
    output wire  [11:0] regs$addr;
    output wire  [31:0] regs$wdata;
    input wire  [31:0] regs$rdata;
    input wire  irq;
    input wire  memory_up;
    output wire  [2:0] to_memory$kind;
    output wire  to_memory$valid;
    output wire  [7:0] to_memory$data;
    input wire  to_memory$last;
    output wire  to_memory$commit;
    input wire  from_memory$valid;
    input wire  [2:0] from_memory$kind;
    input wire  [7:0] from_memory$data;
    input wire  from_memory$last;
    output wire  from_memory$take;
    output reg  refused;

    // Stub signals
    reg  power_on$clock;
    reg  power_on$again;
    reg  power_on$memory_up;
    wire  power_on$reset;
    reg  receiver$clock;
    reg  receiver$reset;
    wire  receiver$value;
    wire  [7:0] receiver$word;
    reg  receiver$word_next;
    wire  receiver$done;
    wire  receiver$refused;
    wire  receiver$unknown_kind;
    wire  receiver$resync;
    reg  sender$clock;
    reg  sender$reset;
    reg  sender$value;
    reg  [7:0] sender$word;
    wire  sender$word_next;
    reg  sender$done;
    reg  sender$refused;
    reg  sender$unknown_kind;
    reg  sender$irq;

    // Sub module instances
    tw_board$bridge$power_on power_on(
        .clock(power_on$clock),
        .again(power_on$again),
        .memory_up(power_on$memory_up),
        .reset(power_on$reset)
    );
    tw_board$bridge$receiver receiver(
        .clock(receiver$clock),
        .reset(receiver$reset),
        .bytes$valid(from_link$valid),
        .bytes$data(from_link$data),
        .regs$valid(regs$valid),
        .regs$write(regs$write),
        .regs$addr(regs$addr),
        .regs$wdata(regs$wdata),
        .regs$rdata(regs$rdata),
        .body$kind(to_memory$kind),
        .body$valid(to_memory$valid),
        .body$data(to_memory$data),
        .body$last(to_memory$last),
        .body$commit(to_memory$commit),
        .value(receiver$value),
        .word(receiver$word),
        .word_next(receiver$word_next),
        .done(receiver$done),
        .refused(receiver$refused),
        .unknown_kind(receiver$unknown_kind),
        .resync(receiver$resync)
    );
    tw_board$bridge$sender sender(
        .clock(sender$clock),
        .reset(sender$reset),
        .bytes$valid(to_link$valid),
        .bytes$ready(to_link$ready),
        .bytes$data(to_link$data),
        .value(sender$value),
        .word(sender$word),
        .word_next(sender$word_next),
        .done(sender$done),
        .refused(sender$refused),
        .unknown_kind(sender$unknown_kind),
        .irq(sender$irq),
        .body$valid(from_memory$valid),
        .body$kind(from_memory$kind),
        .body$data(from_memory$data),
        .body$last(from_memory$last),
        .body$take(from_memory$take)
    );

    // Update code
    always @(*) begin
        power_on$clock = clock;
        receiver$clock = clock;
        sender$clock = clock;
        power_on$again = receiver$resync;
        power_on$memory_up = memory_up;
        reset = power_on$reset;
        receiver$reset = power_on$reset;
        sender$reset = power_on$reset;
        sender$value = receiver$value;
        sender$word = receiver$word;
        receiver$word_next = sender$word_next;
        sender$done = receiver$done;
        sender$refused = receiver$refused;
        sender$unknown_kind = receiver$unknown_kind;
        sender$irq = irq;
        refused = receiver$refused;
    end

endmodule // tw_board$bridge


module tw_board$bridge$power_on(clock,again,memory_up,reset);

    // Module arguments
    input wire  clock;
    input wire  again;
    input wire  memory_up;
    output reg  reset;

    // Constant declarations
    localparam  clock_up_cycles = 12'hfff;

    // Stub signals
    reg  [4:0] count$d;
    wire  [4:0] count$q;
    reg  count$clock;
    reg  [11:0] clock_up$d;
    wire  [11:0] clock_up$q;
    reg  clock_up$clock;

    // Sub module instances
    tw_board$bridge$power_on$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    tw_board$bridge$power_on$clock_up clock_up(
        .d(clock_up$d),
        .q(clock_up$q),
        .clock(clock_up$clock)
    );

    // Update code
    always @(*) begin
        count$clock = clock;
        clock_up$clock = clock;
        count$d = count$q;
        clock_up$d = clock_up$q;
        if (clock_up$q != clock_up_cycles) begin
            clock_up$d = clock_up$q + 32'h1;
        end
        reset = ~&count$q;
        if (~&count$q && memory_up && (clock_up$q == clock_up_cycles)) begin
            count$d = count$q + 32'h1;
        end
        if (again) begin
            count$d = 32'h0;
        end
    end

endmodule // tw_board$bridge$power_on


module tw_board$bridge$power_on$clock_up(d,q,clock);

    // Module arguments
    input wire  [11:0] d;
    output reg  [11:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 12'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$bridge$power_on$clock_up


module tw_board$bridge$power_on$count(d,q,clock);

    // Module arguments
    input wire  [4:0] d;
    output reg  [4:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 5'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$bridge$power_on$count


module tw_board$bridge$receiver(clock,reset,bytes$valid,bytes$data,regs$valid,regs$write,regs$addr,regs$wdata,regs$rdata,body$kind,body$valid,body$data,body$last,body$commit,value,word,word_next,done,refused,unknown_kind,resync);

    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  bytes$valid;
    input wire  [7:0] bytes$data;
    output reg  regs$valid;
    output reg  regs$write;
    output reg  [11:0] regs$addr;
    output reg  [31:0] regs$wdata;
    input wire  [31:0] regs$rdata;
    output reg  [2:0] body$kind;
    output reg  body$valid;
    output reg  [7:0] body$data;
    input wire  body$last;
    output reg  body$commit;
    output reg  value;
    output reg  [7:0] word;
    input wire  word_next;
    output reg  done;
    output reg  refused;
    output reg  unknown_kind;
    output reg  resync;

    // Constant declarations
    localparam  write_reg = 8'h1;
    localparam  read_reg = 8'h2;
    localparam  first_memory = 8'h3;
    localparam  second_memory = 8'h4;
    localparam  answers_writes = 1'b0;
    localparam  run_mask = 16'h3f;
    localparam  hello = 32'h102;

    // Enums
    localparam ReceiverState$Kind = 0;
    localparam ReceiverState$Address = 1;
    localparam ReceiverState$Value = 2;
    localparam ReceiverState$Body = 3;
    localparam ReceiverState$CrcLow = 4;
    localparam ReceiverState$CrcHigh = 5;
    localparam ReceiverState$Refused = 6;

    // Stub signals
    reg  [2:0] state$d;
    wire  [2:0] state$q;
    reg  state$clock;
    reg  [2:0] kind$d;
    wire  [2:0] kind$q;
    reg  kind$clock;
    reg  [1:0] step$d;
    wire  [1:0] step$q;
    reg  step$clock;
    reg  [7:0] addr_low$d;
    wire  [7:0] addr_low$q;
    reg  addr_low$clock;
    reg  [3:0] addr_high$d;
    wire  [3:0] addr_high$q;
    reg  addr_high$clock;
    reg  [31:0] value_bits$d;
    wire  [31:0] value_bits$q;
    reg  value_bits$clock;
    reg  low_wrong$d;
    wire  low_wrong$q;
    reg  low_wrong$clock;
    reg  access$d;
    wire  access$q;
    reg  access$clock;
    reg  unknown$d;
    wire  unknown$q;
    reg  unknown$clock;
    reg  [15:0] zeros$d;
    wire  [15:0] zeros$q;
    reg  zeros$clock;
    reg  crc$clock;
    reg  crc$clear;
    reg  crc$feed;
    reg  [7:0] crc$data;
    wire  [15:0] crc$value;

    // Local signals
    reg  in_frame;
    reg  is_small;
    reg  [2:0] low;
    reg  is_write;
    reg  is_read;
    reg  is_memory_write;
    reg  right;

    // Sub module instances
    tw_board$bridge$receiver$state state(
        .d(state$d),
        .q(state$q),
        .clock(state$clock)
    );
    tw_board$bridge$receiver$kind kind(
        .d(kind$d),
        .q(kind$q),
        .clock(kind$clock)
    );
    tw_board$bridge$receiver$step step(
        .d(step$d),
        .q(step$q),
        .clock(step$clock)
    );
    tw_board$bridge$receiver$addr_low addr_low(
        .d(addr_low$d),
        .q(addr_low$q),
        .clock(addr_low$clock)
    );
    tw_board$bridge$receiver$addr_high addr_high(
        .d(addr_high$d),
        .q(addr_high$q),
        .clock(addr_high$clock)
    );
    tw_board$bridge$receiver$value_bits value_bits(
        .d(value_bits$d),
        .q(value_bits$q),
        .clock(value_bits$clock)
    );
    tw_board$bridge$receiver$low_wrong low_wrong(
        .d(low_wrong$d),
        .q(low_wrong$q),
        .clock(low_wrong$clock)
    );
    tw_board$bridge$receiver$access access(
        .d(access$d),
        .q(access$q),
        .clock(access$clock)
    );
    tw_board$bridge$receiver$unknown unknown(
        .d(unknown$d),
        .q(unknown$q),
        .clock(unknown$clock)
    );
    tw_board$bridge$receiver$zeros zeros(
        .d(zeros$d),
        .q(zeros$q),
        .clock(zeros$clock)
    );
    tw_board$bridge$receiver$crc crc(
        .clock(crc$clock),
        .clear(crc$clear),
        .feed(crc$feed),
        .data(crc$data),
        .value(crc$value)
    );

    // Update code
    always @(*) begin
        state$clock = clock;
        kind$clock = clock;
        step$clock = clock;
        addr_low$clock = clock;
        addr_high$clock = clock;
        value_bits$clock = clock;
        low_wrong$clock = clock;
        access$clock = clock;
        unknown$clock = clock;
        zeros$clock = clock;
        state$d = state$q;
        kind$d = kind$q;
        step$d = step$q;
        addr_low$d = addr_low$q;
        addr_high$d = addr_high$q;
        value_bits$d = value_bits$q;
        low_wrong$d = low_wrong$q;
        access$d = access$q;
        unknown$d = unknown$q;
        zeros$d = zeros$q;
        crc$clock = clock;
        is_write = kind$q == ((write_reg) & 3'h7);
        is_read = kind$q == ((read_reg) & 3'h7);
        is_memory_write = answers_writes && (kind$q == ((first_memory) & 3'h7));
        is_small = (bytes$data >> 32'h3) == 32'h0;
        low = ((bytes$data) & 3'h7);
        in_frame = (state$q == ReceiverState$Kind) || (state$q == ReceiverState$Address) || (state$q == ReceiverState$Value) || (state$q == ReceiverState$Body);
        crc$clear = (state$q == ReceiverState$Kind) && ~bytes$valid;
        crc$feed = bytes$valid && in_frame;
        crc$data = bytes$data;
        right = ~low_wrong$q && (bytes$data == ((crc$value >> 32'h8) & 8'hff));
        regs$valid = access$q;
        regs$write = is_write;
        regs$addr = (((addr_high$q) & 12'hfff) << 32'h8) | ((addr_low$q) & 12'hfff);
        regs$wdata = value_bits$q;
        body$kind = kind$q;
        body$valid = bytes$valid && (state$q == ReceiverState$Body);
        body$data = bytes$data;
        body$commit = 1'b0;
        word = ((value_bits$q) & 8'hff);
        value = access$q && is_read;
        done = access$q && is_write;
        access$d = 1'b0;
        refused = state$q == ReceiverState$Refused;
        unknown_kind = unknown$q;
        if (word_next || (bytes$valid && (state$q == ReceiverState$Value))) begin
            value_bits$d = (value_bits$q >> 32'h8) | (((bytes$data) & 32'hffffffff) << 32'h18);
        end
        if (access$q && is_read) begin
            value_bits$d = regs$rdata;
        end
        if (state$q == ReceiverState$Kind) begin
            kind$d = ((bytes$data) & 3'h7);
            step$d = 32'h0;
        end
        if (bytes$valid) begin
            case (state$q)
                ReceiverState$Kind:
                    begin
                        if (is_small && ((low == ((write_reg) & 3'h7)) || (low == ((read_reg) & 3'h7)))) begin
                            state$d = ReceiverState$Address;
                        end
                        else if (is_small && ((low == ((first_memory) & 3'h7)) || (low == ((second_memory) & 3'h7)))) begin
                            state$d = ReceiverState$Body;
                        end
                        else if ((bytes$data != 32'h0) && ~&bytes$data) begin
                            state$d = ReceiverState$Refused;
                            unknown$d = 1'b1;
                        end
                    end
                ReceiverState$Address:
                    begin
                        step$d = step$q ^ 32'h1;
                        if (step$q == 32'h0) begin
                            addr_low$d = bytes$data;
                        end
                        else begin
                            addr_high$d = ((bytes$data) & 4'hf);
                            state$d = ReceiverState$CrcLow;
                            if (is_write) begin
                                state$d = ReceiverState$Value;
                            end
                        end
                    end
                ReceiverState$Value:
                    begin
                        step$d = step$q + 32'h1;
                        if (&step$q) begin
                            state$d = ReceiverState$CrcLow;
                        end
                    end
                ReceiverState$Body:
                    begin
                        if (body$last) begin
                            state$d = ReceiverState$CrcLow;
                        end
                    end
                ReceiverState$CrcLow:
                    begin
                        low_wrong$d = bytes$data != ((crc$value) & 8'hff);
                        state$d = ReceiverState$CrcHigh;
                    end
                ReceiverState$CrcHigh:
                    begin
                        state$d = ReceiverState$Refused;
                        unknown$d = 1'b0;
                        if (right) begin
                            state$d = ReceiverState$Kind;
                            access$d = is_write || is_read;
                            body$commit = ~is_write && ~is_read;
                            if (is_memory_write) begin
                                done = 1'b1;
                            end
                        end
                    end
                default:
                    begin
                    end
            endcase
        end
        resync = 1'b0;
        if (bytes$valid) begin
            zeros$d = 32'h0;
            if (bytes$data == 32'h0) begin
                zeros$d = (zeros$q + 32'h1) & run_mask;
                resync = zeros$q == run_mask;
            end
        end
        if (reset) begin
            state$d = ReceiverState$Kind;
            access$d = 1'b0;
            value_bits$d = hello;
        end
    end

endmodule // tw_board$bridge$receiver


module tw_board$bridge$receiver$access(d,q,clock);

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

endmodule // tw_board$bridge$receiver$access


module tw_board$bridge$receiver$addr_high(d,q,clock);

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

endmodule // tw_board$bridge$receiver$addr_high


module tw_board$bridge$receiver$addr_low(d,q,clock);

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

endmodule // tw_board$bridge$receiver$addr_low


module tw_board$bridge$receiver$crc(clock,clear,feed,data,value);

    // Module arguments
    input wire  clock;
    input wire  clear;
    input wire  feed;
    input wire  [7:0] data;
    output reg  [15:0] value;

    // Stub signals
    reg  [15:0] crc$d;
    wire  [15:0] crc$q;
    reg  crc$clock;

    // Local signals
    reg  [7:0] high;
    reg  [15:0] folded;

    // Sub module instances
    tw_board$bridge$receiver$crc$crc crc(
        .d(crc$d),
        .q(crc$q),
        .clock(crc$clock)
    );

    // Update code
    always @(*) begin
        crc$clock = clock;
        crc$d = crc$q;
        value = crc$q;
        high = ((crc$q >> 32'h8) & 8'hff) ^ data;
        folded = ((high) & 16'hffff) ^ (((high) & 16'hffff) >> 32'h4);
        if (feed) begin
            crc$d = (crc$q << 32'h8) ^ (folded << 32'hc) ^ (folded << 32'h5) ^ folded;
        end
        if (clear) begin
            crc$d = 32'hffff;
        end
    end

endmodule // tw_board$bridge$receiver$crc


module tw_board$bridge$receiver$crc$crc(d,q,clock);

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

endmodule // tw_board$bridge$receiver$crc$crc


module tw_board$bridge$receiver$kind(d,q,clock);

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

endmodule // tw_board$bridge$receiver$kind


module tw_board$bridge$receiver$low_wrong(d,q,clock);

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

endmodule // tw_board$bridge$receiver$low_wrong


module tw_board$bridge$receiver$state(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Enums
    localparam ReceiverState$Kind = 0;
    localparam ReceiverState$Address = 1;
    localparam ReceiverState$Value = 2;
    localparam ReceiverState$Body = 3;
    localparam ReceiverState$CrcLow = 4;
    localparam ReceiverState$CrcHigh = 5;
    localparam ReceiverState$Refused = 6;

    // Update code (custom)
    initial begin
       q = 64'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$bridge$receiver$state


module tw_board$bridge$receiver$step(d,q,clock);

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

endmodule // tw_board$bridge$receiver$step


module tw_board$bridge$receiver$unknown(d,q,clock);

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

endmodule // tw_board$bridge$receiver$unknown


module tw_board$bridge$receiver$value_bits(d,q,clock);

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

endmodule // tw_board$bridge$receiver$value_bits


module tw_board$bridge$receiver$zeros(d,q,clock);

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

endmodule // tw_board$bridge$receiver$zeros


module tw_board$bridge$sender(clock,reset,bytes$valid,bytes$ready,bytes$data,value,word,word_next,done,refused,unknown_kind,irq,body$valid,body$kind,body$data,body$last,body$take);

    // Module arguments
    input wire  clock;
    input wire  reset;
    output reg  bytes$valid;
    input wire  bytes$ready;
    output reg  [7:0] bytes$data;
    input wire  value;
    input wire  [7:0] word;
    output reg  word_next;
    input wire  done;
    input wire  refused;
    input wire  unknown_kind;
    input wire  irq;
    input wire  body$valid;
    input wire  [2:0] body$kind;
    input wire  [7:0] body$data;
    input wire  body$last;
    output reg  body$take;

    // Constant declarations
    localparam  kind_value = 4'h1;
    localparam  kind_done = 4'h2;
    localparam  kind_interrupt = 4'h5;
    localparam  kind_hello = 4'h7;
    localparam  kind_refused = 4'h8;

    // Enums
    localparam SenderState$Idle = 0;
    localparam SenderState$Kind = 1;
    localparam SenderState$Reason = 2;
    localparam SenderState$Word = 3;
    localparam SenderState$Body = 4;
    localparam SenderState$CrcLow = 5;
    localparam SenderState$CrcHigh = 6;

    // Stub signals
    reg  [2:0] state$d;
    wire  [2:0] state$q;
    reg  state$clock;
    reg  [3:0] kind$d;
    wire  [3:0] kind$q;
    reg  kind$clock;
    reg  [1:0] step$d;
    wire  [1:0] step$q;
    reg  step$clock;
    reg  hello_due$d;
    wire  hello_due$q;
    reg  hello_due$clock;
    reg  value_due$d;
    wire  value_due$q;
    reg  value_due$clock;
    reg  done_due$d;
    wire  done_due$q;
    reg  done_due$clock;
    reg  irq_due$d;
    wire  irq_due$q;
    reg  irq_due$clock;
    reg  irq_before$d;
    wire  irq_before$q;
    reg  irq_before$clock;
    reg  refused_sent$d;
    wire  refused_sent$q;
    reg  refused_sent$clock;
    reg  crc$clock;
    reg  crc$clear;
    reg  crc$feed;
    reg  [7:0] crc$data;
    wire  [15:0] crc$value;

    // Local signals
    reg  [7:0] data;
    reg  valid;
    reg  is_hello;
    reg  taken;

    // Sub module instances
    tw_board$bridge$sender$state state(
        .d(state$d),
        .q(state$q),
        .clock(state$clock)
    );
    tw_board$bridge$sender$kind kind(
        .d(kind$d),
        .q(kind$q),
        .clock(kind$clock)
    );
    tw_board$bridge$sender$step step(
        .d(step$d),
        .q(step$q),
        .clock(step$clock)
    );
    tw_board$bridge$sender$hello_due hello_due(
        .d(hello_due$d),
        .q(hello_due$q),
        .clock(hello_due$clock)
    );
    tw_board$bridge$sender$value_due value_due(
        .d(value_due$d),
        .q(value_due$q),
        .clock(value_due$clock)
    );
    tw_board$bridge$sender$done_due done_due(
        .d(done_due$d),
        .q(done_due$q),
        .clock(done_due$clock)
    );
    tw_board$bridge$sender$irq_due irq_due(
        .d(irq_due$d),
        .q(irq_due$q),
        .clock(irq_due$clock)
    );
    tw_board$bridge$sender$irq_before irq_before(
        .d(irq_before$d),
        .q(irq_before$q),
        .clock(irq_before$clock)
    );
    tw_board$bridge$sender$refused_sent refused_sent(
        .d(refused_sent$d),
        .q(refused_sent$q),
        .clock(refused_sent$clock)
    );
    tw_board$bridge$sender$crc crc(
        .clock(crc$clock),
        .clear(crc$clear),
        .feed(crc$feed),
        .data(crc$data),
        .value(crc$value)
    );

    // Update code
    always @(*) begin
        state$clock = clock;
        kind$clock = clock;
        step$clock = clock;
        hello_due$clock = clock;
        value_due$clock = clock;
        done_due$clock = clock;
        irq_due$clock = clock;
        irq_before$clock = clock;
        refused_sent$clock = clock;
        state$d = state$q;
        kind$d = kind$q;
        step$d = step$q;
        hello_due$d = hello_due$q;
        value_due$d = value_due$q;
        done_due$d = done_due$q;
        irq_due$d = irq_due$q;
        irq_before$d = irq_before$q;
        refused_sent$d = refused_sent$q;
        crc$clock = clock;
        case (state$q)
            SenderState$Kind:
                begin
                    data = ((kind$q) & 8'hff) | 32'h80;
                end
            SenderState$Reason:
                begin
                    data = 32'h1;
                    if (unknown_kind) begin
                        data = 32'h2;
                    end
                end
            SenderState$Word:
                begin
                    data = word;
                end
            SenderState$CrcLow:
                begin
                    data = ((crc$value) & 8'hff);
                end
            SenderState$CrcHigh:
                begin
                    data = ((crc$value >> 32'h8) & 8'hff);
                end
            default:
                begin
                    data = body$data;
                end
        endcase
        is_hello = kind$q == kind_hello;
        valid = (state$q != SenderState$Idle) && ((state$q != SenderState$Body) || body$valid);
        taken = valid && bytes$ready;
        bytes$valid = valid;
        bytes$data = data;
        body$take = taken && (state$q == SenderState$Body);
        word_next = taken && (state$q == SenderState$Word);
        crc$clear = state$q == SenderState$Idle;
        crc$feed = taken && (state$q != SenderState$CrcLow);
        crc$data = data;
        if (state$q == SenderState$Idle) begin
            step$d = 32'h0;
            if (hello_due$q) begin
                state$d = SenderState$Kind;
                kind$d = kind_hello;
                hello_due$d = 1'b0;
            end
            else if (refused_sent$q) begin
                state$d = SenderState$Idle;
            end
            else if (refused) begin
                state$d = SenderState$Kind;
                kind$d = kind_refused;
                refused_sent$d = 1'b1;
            end
            else if (value_due$q) begin
                state$d = SenderState$Kind;
                kind$d = kind_value;
                value_due$d = 1'b0;
            end
            else if (done_due$q) begin
                state$d = SenderState$Kind;
                kind$d = kind_done;
                done_due$d = 1'b0;
            end
            else if (irq_due$q) begin
                state$d = SenderState$Kind;
                kind$d = kind_interrupt;
                irq_due$d = 1'b0;
            end
            else if (body$valid) begin
                state$d = SenderState$Kind;
                kind$d = ((body$kind) & 4'hf);
            end
        end
        if (taken) begin
            case (state$q)
                SenderState$Kind:
                    begin
                        state$d = SenderState$Body;
                        if ((kind$q == kind_value) || is_hello) begin
                            state$d = SenderState$Word;
                        end
                        else if (kind$q == kind_refused) begin
                            state$d = SenderState$Reason;
                        end
                        else if ((kind$q == kind_done) || (kind$q == kind_interrupt)) begin
                            state$d = SenderState$CrcLow;
                        end
                    end
                SenderState$Reason:
                    begin
                        state$d = SenderState$CrcLow;
                    end
                SenderState$Word:
                    begin
                        step$d = step$q + 32'h1;
                        if (&step$q) begin
                            state$d = SenderState$CrcLow;
                        end
                    end
                SenderState$Body:
                    begin
                        if (body$last) begin
                            state$d = SenderState$CrcLow;
                        end
                    end
                SenderState$CrcLow:
                    begin
                        state$d = SenderState$CrcHigh;
                    end
                default:
                    begin
                        state$d = SenderState$Idle;
                    end
            endcase
        end
        if (value) begin
            value_due$d = 1'b1;
        end
        if (done) begin
            done_due$d = 1'b1;
        end
        irq_before$d = irq;
        if (irq && ~irq_before$q) begin
            irq_due$d = 1'b1;
        end
        if (reset) begin
            state$d = SenderState$Idle;
            hello_due$d = 1'b1;
            value_due$d = 1'b0;
            done_due$d = 1'b0;
            irq_due$d = 1'b0;
            irq_before$d = 1'b0;
            refused_sent$d = 1'b0;
        end
    end

endmodule // tw_board$bridge$sender


module tw_board$bridge$sender$crc(clock,clear,feed,data,value);

    // Module arguments
    input wire  clock;
    input wire  clear;
    input wire  feed;
    input wire  [7:0] data;
    output reg  [15:0] value;

    // Stub signals
    reg  [15:0] crc$d;
    wire  [15:0] crc$q;
    reg  crc$clock;

    // Local signals
    reg  [7:0] high;
    reg  [15:0] folded;

    // Sub module instances
    tw_board$bridge$sender$crc$crc crc(
        .d(crc$d),
        .q(crc$q),
        .clock(crc$clock)
    );

    // Update code
    always @(*) begin
        crc$clock = clock;
        crc$d = crc$q;
        value = crc$q;
        high = ((crc$q >> 32'h8) & 8'hff) ^ data;
        folded = ((high) & 16'hffff) ^ (((high) & 16'hffff) >> 32'h4);
        if (feed) begin
            crc$d = (crc$q << 32'h8) ^ (folded << 32'hc) ^ (folded << 32'h5) ^ folded;
        end
        if (clear) begin
            crc$d = 32'hffff;
        end
    end

endmodule // tw_board$bridge$sender$crc


module tw_board$bridge$sender$crc$crc(d,q,clock);

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

endmodule // tw_board$bridge$sender$crc$crc


module tw_board$bridge$sender$done_due(d,q,clock);

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

endmodule // tw_board$bridge$sender$done_due


module tw_board$bridge$sender$hello_due(d,q,clock);

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

endmodule // tw_board$bridge$sender$hello_due


module tw_board$bridge$sender$irq_before(d,q,clock);

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

endmodule // tw_board$bridge$sender$irq_before


module tw_board$bridge$sender$irq_due(d,q,clock);

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

endmodule // tw_board$bridge$sender$irq_due


module tw_board$bridge$sender$kind(d,q,clock);

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

endmodule // tw_board$bridge$sender$kind


module tw_board$bridge$sender$refused_sent(d,q,clock);

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

endmodule // tw_board$bridge$sender$refused_sent


module tw_board$bridge$sender$state(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Enums
    localparam SenderState$Idle = 0;
    localparam SenderState$Kind = 1;
    localparam SenderState$Reason = 2;
    localparam SenderState$Word = 3;
    localparam SenderState$Body = 4;
    localparam SenderState$CrcLow = 5;
    localparam SenderState$CrcHigh = 6;

    // Update code (custom)
    initial begin
       q = 64'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$bridge$sender$state


module tw_board$bridge$sender$step(d,q,clock);

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

endmodule // tw_board$bridge$sender$step


module tw_board$bridge$sender$value_due(d,q,clock);

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

endmodule // tw_board$bridge$sender$value_due

// v-- Setting output parameters to net type for wrapped code.


module tw_board$core(clock,reset,regs$valid,regs$write,regs$addr,regs$wdata,regs$rdata,irq,bus$ar_valid,bus$ar_ready,bus$ar_id,bus$ar_addr,bus$ar_len,bus$r_valid,bus$r_id,bus$r_data,bus$r_error,bus$r_last,bus$aw_valid,bus$aw_ready,bus$aw_addr,bus$aw_len,bus$w_valid,bus$w_ready,bus$w_data,bus$w_strb,bus$w_last,bus$b_valid,bus$b_error);

    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  regs$valid;
    input wire  regs$write;
    input wire  [11:0] regs$addr;
    input wire  [31:0] regs$wdata;
    output wire  [31:0] regs$rdata;
    output wire  irq;
    output wire  bus$ar_valid;
    input wire  bus$ar_ready;
    output wire  bus$ar_id;
    output wire  [39:0] bus$ar_addr;
    output wire  [7:0] bus$ar_len;
    input wire  bus$r_valid;
    input wire  bus$r_id;
    input wire  [15:0] bus$r_data;
    input wire  bus$r_error;
    input wire  bus$r_last;
    output wire  bus$aw_valid;
    input wire  bus$aw_ready;
    output wire  [39:0] bus$aw_addr;
    output wire  [7:0] bus$aw_len;
    output wire  bus$w_valid;
    input wire  bus$w_ready;
    output wire  [15:0] bus$w_data;
    output wire  [1:0] bus$w_strb;
    output wire  bus$w_last;
    input wire  bus$b_valid;
    input wire  bus$b_error;

    // Update code (wrapper)
    wire [19:0] ar_addr;
    wire [19:0] aw_addr;
    assign bus$ar_addr = {20'd0, ar_addr};
    assign bus$aw_addr = {20'd0, aw_addr};
    tw_core u_core (
      .clk_i(clock), .rst_ni(!reset),
      .reg_valid_i(regs$valid), .reg_write_i(regs$write), .reg_addr_i(regs$addr), .reg_wdata_i(regs$wdata), .reg_rdata_o(regs$rdata),
      .irq_o(irq),
      .ar_valid_o(bus$ar_valid), .ar_ready_i(bus$ar_ready), .ar_id_o(bus$ar_id), .ar_addr_o(ar_addr), .ar_len_o(bus$ar_len),
      .r_valid_i(bus$r_valid), .r_id_i(bus$r_id), .r_data_i(bus$r_data), .r_resp_i({bus$r_error, 1'b0}), .r_last_i(bus$r_last),
      .aw_valid_o(bus$aw_valid), .aw_ready_i(bus$aw_ready), .aw_addr_o(aw_addr), .aw_len_o(bus$aw_len),
      .w_valid_o(bus$w_valid), .w_ready_i(bus$w_ready), .w_data_o(bus$w_data), .w_strb_o(bus$w_strb), .w_last_o(bus$w_last),
      .b_valid_i(bus$b_valid), .b_resp_i({bus$b_error, 1'b0})
    );
endmodule // tw_board$core


module tw_board$link(clock,uart_rx,uart_tx,from_link$valid,from_link$data,to_link$valid,to_link$ready,to_link$data);

    // Module arguments
    input wire  clock;
    input wire  uart_rx;
    output reg  uart_tx;
    output wire  from_link$valid;
    output wire  [7:0] from_link$data;
    input wire  to_link$valid;
    output wire  to_link$ready;
    input wire  [7:0] to_link$data;

    // Stub signals
    reg  receiver$clock;
    reg  receiver$line;
    reg  transmitter$clock;
    wire  transmitter$line;

    // Sub module instances
    tw_board$link$receiver receiver(
        .clock(receiver$clock),
        .line(receiver$line),
        .bytes$valid(from_link$valid),
        .bytes$data(from_link$data)
    );
    tw_board$link$transmitter transmitter(
        .clock(transmitter$clock),
        .line(transmitter$line),
        .bytes$valid(to_link$valid),
        .bytes$ready(to_link$ready),
        .bytes$data(to_link$data)
    );

    // Update code
    always @(*) begin
        receiver$clock = clock;
        transmitter$clock = clock;
        receiver$line = uart_rx;
        uart_tx = transmitter$line;
    end

endmodule // tw_board$link


module tw_board$link$receiver(clock,line,bytes$valid,bytes$data);

    // Module arguments
    input wire  clock;
    input wire  line;
    output reg  bytes$valid;
    output reg  [7:0] bytes$data;

    // Constant declarations
    localparam  half = 16'h32;
    localparam  whole = 16'h67;
    localparam  mask = 16'h7f;

    // Stub signals
    reg  first$d;
    wire  first$q;
    reg  first$clock;
    reg  level$d;
    wire  level$q;
    reg  level$clock;
    reg  [15:0] count$d;
    wire  [15:0] count$q;
    reg  count$clock;
    reg  [3:0] samples$d;
    wire  [3:0] samples$q;
    reg  samples$clock;
    reg  [7:0] shift$d;
    wire  [7:0] shift$q;
    reg  shift$clock;

    // Sub module instances
    tw_board$link$receiver$first first(
        .d(first$d),
        .q(first$q),
        .clock(first$clock)
    );
    tw_board$link$receiver$level level(
        .d(level$d),
        .q(level$q),
        .clock(level$clock)
    );
    tw_board$link$receiver$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    tw_board$link$receiver$samples samples(
        .d(samples$d),
        .q(samples$q),
        .clock(samples$clock)
    );
    tw_board$link$receiver$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );

    // Update code
    always @(*) begin
        first$clock = clock;
        level$clock = clock;
        count$clock = clock;
        samples$clock = clock;
        shift$clock = clock;
        first$d = first$q;
        level$d = level$q;
        count$d = count$q;
        samples$d = samples$q;
        shift$d = shift$q;
        first$d = ~line;
        level$d = first$q;
        bytes$data = shift$q;
        bytes$valid = 1'b0;
        if (samples$q == 32'h0) begin
            count$d = half;
            if (level$q) begin
                samples$d = 32'ha;
            end
        end
        else if (count$q != 32'h0) begin
            count$d = (count$q - 32'h1) & mask;
        end
        else begin
            count$d = whole;
            samples$d = samples$q - 32'h1;
            if (samples$q == 32'ha) begin
                if (~level$q) begin
                    samples$d = 32'h0;
                end
            end
            else if (samples$q == 32'h1) begin
                bytes$valid = ~level$q;
            end
            else begin
                shift$d = shift$q >> 32'h1;
                if (~level$q) begin
                    shift$d = (shift$q >> 32'h1) | 32'h80;
                end
            end
        end
    end

endmodule // tw_board$link$receiver


module tw_board$link$receiver$count(d,q,clock);

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

endmodule // tw_board$link$receiver$count


module tw_board$link$receiver$first(d,q,clock);

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

endmodule // tw_board$link$receiver$first


module tw_board$link$receiver$level(d,q,clock);

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

endmodule // tw_board$link$receiver$level


module tw_board$link$receiver$samples(d,q,clock);

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

endmodule // tw_board$link$receiver$samples


module tw_board$link$receiver$shift(d,q,clock);

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

endmodule // tw_board$link$receiver$shift


module tw_board$link$transmitter(clock,line,bytes$valid,bytes$ready,bytes$data);

    // Module arguments
    input wire  clock;
    output reg  line;
    input wire  bytes$valid;
    output reg  bytes$ready;
    input wire  [7:0] bytes$data;

    // Constant declarations
    localparam  whole = 16'h67;
    localparam  mask = 16'h7f;

    // Stub signals
    reg  [15:0] count$d;
    wire  [15:0] count$q;
    reg  count$clock;
    reg  [3:0] bits_left$d;
    wire  [3:0] bits_left$q;
    reg  bits_left$clock;
    reg  [8:0] shift$d;
    wire  [8:0] shift$q;
    reg  shift$clock;

    // Sub module instances
    tw_board$link$transmitter$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );
    tw_board$link$transmitter$bits_left bits_left(
        .d(bits_left$d),
        .q(bits_left$q),
        .clock(bits_left$clock)
    );
    tw_board$link$transmitter$shift shift(
        .d(shift$d),
        .q(shift$q),
        .clock(shift$clock)
    );

    // Update code
    always @(*) begin
        count$clock = clock;
        bits_left$clock = clock;
        shift$clock = clock;
        count$d = count$q;
        bits_left$d = bits_left$q;
        shift$d = shift$q;
        line = ~shift$q[32'h0];
        bytes$ready = bits_left$q == 32'h0;
        if (bits_left$q == 32'h0) begin
            count$d = whole;
            if (bytes$valid) begin
                bits_left$d = 32'ha;
                shift$d = (((bytes$data ^ 32'hff) & 9'h1ff) << 32'h1) | 32'h1;
            end
        end
        else if (count$q != 32'h0) begin
            count$d = (count$q - 32'h1) & mask;
        end
        else begin
            count$d = whole;
            bits_left$d = bits_left$q - 32'h1;
            shift$d = shift$q >> 32'h1;
        end
    end

endmodule // tw_board$link$transmitter


module tw_board$link$transmitter$bits_left(d,q,clock);

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

endmodule // tw_board$link$transmitter$bits_left


module tw_board$link$transmitter$count(d,q,clock);

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

endmodule // tw_board$link$transmitter$count


module tw_board$link$transmitter$shift(d,q,clock);

    // Module arguments
    input wire  [8:0] d;
    output reg  [8:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 9'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$link$transmitter$shift


module tw_board$memory(clock,reset,up,bus$ar_valid,bus$ar_ready,bus$ar_id,bus$ar_addr,bus$ar_len,bus$r_valid,bus$r_id,bus$r_data,bus$r_error,bus$r_last,bus$aw_valid,bus$aw_ready,bus$aw_addr,bus$aw_len,bus$w_valid,bus$w_ready,bus$w_data,bus$w_strb,bus$w_last,bus$b_valid,bus$b_error,to_host$valid,to_host$kind,to_host$data,to_host$last,to_host$take,from_host$kind,from_host$valid,from_host$data,from_host$last,from_host$commit);

    // Module arguments
    input wire  clock;
    input wire  reset;
    output reg  up;
    input wire  bus$ar_valid;
    output reg  bus$ar_ready;
    input wire  bus$ar_id;
    input wire  [39:0] bus$ar_addr;
    input wire  [7:0] bus$ar_len;
    output reg  bus$r_valid;
    output reg  bus$r_id;
    output reg  [15:0] bus$r_data;
    output reg  bus$r_error;
    output reg  bus$r_last;
    input wire  bus$aw_valid;
    output reg  bus$aw_ready;
    input wire  [39:0] bus$aw_addr;
    input wire  [7:0] bus$aw_len;
    input wire  bus$w_valid;
    output reg  bus$w_ready;
    input wire  [15:0] bus$w_data;
    input wire  [1:0] bus$w_strb;
    input wire  bus$w_last;
    output reg  bus$b_valid;
    output reg  bus$b_error;
    output reg  to_host$valid;
    output reg  [2:0] to_host$kind;
    output reg  [7:0] to_host$data;
    output reg  to_host$last;
    input wire  to_host$take;
    input wire  [2:0] from_host$kind;
    input wire  from_host$valid;
    input wire  [7:0] from_host$data;
    output reg  from_host$last;
    input wire  from_host$commit;

    // Constant declarations
    localparam  read_request = 8'h83;
    localparam  write_request = 8'h84;
    localparam  write_done = 8'h4;
    localparam  last_strobes = 1'b0;
    localparam  top_byte = 16'h8;
    localparam  longest = 8'hf;

    // Enums
    localparam RequestState$Idle = 0;
    localparam RequestState$Client = 1;
    localparam RequestState$Address = 2;
    localparam RequestState$Beats = 3;
    localparam RequestState$FirstStrobes = 4;
    localparam RequestState$Data = 5;
    localparam RequestState$LastStrobes = 6;
    localparam AnswerState$Client = 0;
    localparam AnswerState$Beats = 1;
    localparam AnswerState$Status = 2;
    localparam AnswerState$Data = 3;

    // Stub signals
    reg  [2:0] request$d;
    wire  [2:0] request$q;
    reg  request$clock;
    reg  is_write$d;
    wire  is_write$q;
    reg  is_write$clock;
    reg  client$d;
    wire  client$q;
    reg  client$clock;
    reg  [39:0] addr$d;
    wire  [39:0] addr$q;
    reg  addr$clock;
    reg  [7:0] len$d;
    wire  [7:0] len$q;
    reg  len$clock;
    reg  sent$d;
    wire  sent$q;
    reg  sent$clock;
    reg  [2:0] addr_step$d;
    wire  [2:0] addr_step$q;
    reg  addr_step$clock;
    reg  [1:0] answer$d;
    wire  [1:0] answer$q;
    reg  answer$clock;
    reg  answer_client$d;
    wire  answer_client$q;
    reg  answer_client$clock;
    reg  answer_error$d;
    wire  answer_error$q;
    reg  answer_error$clock;
    reg  [7:0] beats_left$d;
    wire  [7:0] beats_left$q;
    reg  beats_left$clock;
    reg  received$d;
    wire  received$q;
    reg  received$clock;
    reg  [15:0] beat$d;
    wire  [15:0] beat$q;
    reg  beat$clock;

    // Local signals
    reg  [15:0] next_beat;
    reg  [15:0] place;

    // Sub module instances
    tw_board$memory$request request(
        .d(request$d),
        .q(request$q),
        .clock(request$clock)
    );
    tw_board$memory$is_write is_write(
        .d(is_write$d),
        .q(is_write$q),
        .clock(is_write$clock)
    );
    tw_board$memory$client client(
        .d(client$d),
        .q(client$q),
        .clock(client$clock)
    );
    tw_board$memory$addr addr(
        .d(addr$d),
        .q(addr$q),
        .clock(addr$clock)
    );
    tw_board$memory$len len(
        .d(len$d),
        .q(len$q),
        .clock(len$clock)
    );
    tw_board$memory$sent sent(
        .d(sent$d),
        .q(sent$q),
        .clock(sent$clock)
    );
    tw_board$memory$addr_step addr_step(
        .d(addr_step$d),
        .q(addr_step$q),
        .clock(addr_step$clock)
    );
    tw_board$memory$answer answer(
        .d(answer$d),
        .q(answer$q),
        .clock(answer$clock)
    );
    tw_board$memory$answer_client answer_client(
        .d(answer_client$d),
        .q(answer_client$q),
        .clock(answer_client$clock)
    );
    tw_board$memory$answer_error answer_error(
        .d(answer_error$d),
        .q(answer_error$q),
        .clock(answer_error$clock)
    );
    tw_board$memory$beats_left beats_left(
        .d(beats_left$d),
        .q(beats_left$q),
        .clock(beats_left$clock)
    );
    tw_board$memory$received received(
        .d(received$d),
        .q(received$q),
        .clock(received$clock)
    );
    tw_board$memory$beat beat(
        .d(beat$d),
        .q(beat$q),
        .clock(beat$clock)
    );

    // Update code
    always @(*) begin
        request$clock = clock;
        is_write$clock = clock;
        client$clock = clock;
        addr$clock = clock;
        len$clock = clock;
        sent$clock = clock;
        addr_step$clock = clock;
        answer$clock = clock;
        answer_client$clock = clock;
        answer_error$clock = clock;
        beats_left$clock = clock;
        received$clock = clock;
        beat$clock = clock;
        request$d = request$q;
        is_write$d = is_write$q;
        client$d = client$q;
        addr$d = addr$q;
        len$d = len$q;
        sent$d = sent$q;
        addr_step$d = addr_step$q;
        answer$d = answer$q;
        answer_client$d = answer_client$q;
        answer_error$d = answer_error$q;
        beats_left$d = beats_left$q;
        received$d = received$q;
        beat$d = beat$q;
        up = 1'b1;
        bus$aw_ready = request$q == RequestState$Idle;
        bus$ar_ready = (request$q == RequestState$Idle) && ~bus$aw_valid;
        bus$w_ready = 1'b0;
        if (request$q == RequestState$Idle) begin
            is_write$d = bus$aw_valid;
            client$d = bus$ar_id;
            sent$d = 32'h0;
            addr_step$d = 32'h0;
            addr$d = bus$ar_addr;
            len$d = bus$ar_len & longest;
            if (bus$aw_valid) begin
                addr$d = bus$aw_addr;
                len$d = bus$aw_len & longest;
                request$d = RequestState$Address;
            end
            else if (bus$ar_valid) begin
                request$d = RequestState$Client;
            end
        end
        place = ((sent$q) & 16'hffff) << 32'h3;
        to_host$valid = request$q != RequestState$Idle;
        to_host$kind = ((read_request) & 3'h7);
        if (is_write$q) begin
            to_host$kind = ((write_request) & 3'h7);
        end
        to_host$data = ((bus$w_data >> place) & 8'hff);
        to_host$last = 1'b0;
        case (request$q)
            RequestState$Client:
                begin
                    to_host$data = ((client$q) & 8'hff);
                    if (to_host$take) begin
                        request$d = RequestState$Address;
                    end
                end
            RequestState$Address:
                begin
                    to_host$data = ((addr$q) & 8'hff);
                    if (to_host$take) begin
                        addr$d = addr$q >> 32'h8;
                        addr_step$d = addr_step$q + 32'h1;
                        if (addr_step$q == 32'h4) begin
                            request$d = RequestState$Beats;
                        end
                    end
                end
            RequestState$Beats:
                begin
                    to_host$data = len$q;
                    to_host$last = ~is_write$q;
                    if (to_host$take) begin
                        request$d = RequestState$Idle;
                        if (is_write$q) begin
                            request$d = RequestState$FirstStrobes;
                        end
                    end
                end
            RequestState$FirstStrobes:
                begin
                    to_host$valid = bus$w_valid;
                    to_host$data = ((bus$w_strb >> place) & 8'hff);
                    if (to_host$take) begin
                        sent$d = sent$q + 32'h1;
                        if (sent$q == last_strobes) begin
                            sent$d = 32'h0;
                            request$d = RequestState$Data;
                        end
                    end
                end
            RequestState$Data:
                begin
                    to_host$valid = bus$w_valid;
                    if (to_host$take) begin
                        sent$d = sent$q + 32'h1;
                        if (&sent$q) begin
                            bus$w_ready = ~bus$w_last;
                            if (bus$w_last) begin
                                request$d = RequestState$LastStrobes;
                            end
                        end
                    end
                end
            RequestState$LastStrobes:
                begin
                    to_host$data = ((bus$w_strb >> place) & 8'hff);
                    to_host$last = sent$q == last_strobes;
                    if (to_host$take) begin
                        sent$d = sent$q + 32'h1;
                        if (sent$q == last_strobes) begin
                            bus$w_ready = 1'b1;
                            request$d = RequestState$Idle;
                        end
                    end
                end
            default:
                begin
                end
        endcase
        next_beat = (beat$q >> 32'h8) | (((from_host$data) & 16'hffff) << top_byte);
        from_host$last = 1'b0;
        bus$r_valid = 1'b0;
        bus$r_id = answer_client$q;
        bus$r_data = next_beat;
        bus$r_error = answer_error$q;
        bus$r_last = beats_left$q == 32'h0;
        bus$b_valid = 1'b0;
        bus$b_error = answer_error$q;
        if (from_host$commit) begin
            bus$b_valid = from_host$kind == ((write_done) & 3'h7);
        end
        if (from_host$kind == ((write_done) & 3'h7)) begin
            from_host$last = 1'b1;
            if (from_host$valid) begin
                answer_error$d = from_host$data[32'h0];
            end
        end
        else if (from_host$valid) begin
            case (answer$q)
                AnswerState$Client:
                    begin
                        answer_client$d = from_host$data[32'h0];
                        answer$d = AnswerState$Beats;
                    end
                AnswerState$Beats:
                    begin
                        beats_left$d = from_host$data & longest;
                        answer$d = AnswerState$Status;
                    end
                AnswerState$Status:
                    begin
                        answer_error$d = from_host$data[32'h0];
                        received$d = 32'h0;
                        answer$d = AnswerState$Data;
                    end
                default:
                    begin
                        beat$d = next_beat;
                        received$d = received$q + 32'h1;
                        if (&received$q) begin
                            bus$r_valid = 1'b1;
                            beats_left$d = (beats_left$q - 32'h1) & longest;
                            if (beats_left$q == 32'h0) begin
                                from_host$last = 1'b1;
                                answer$d = AnswerState$Client;
                            end
                        end
                    end
            endcase
        end
        if (reset) begin
            request$d = RequestState$Idle;
            answer$d = AnswerState$Client;
        end
    end

endmodule // tw_board$memory


module tw_board$memory$addr(d,q,clock);

    // Module arguments
    input wire  [39:0] d;
    output reg  [39:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 40'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$memory$addr


module tw_board$memory$addr_step(d,q,clock);

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

endmodule // tw_board$memory$addr_step


module tw_board$memory$answer(d,q,clock);

    // Module arguments
    input wire  [1:0] d;
    output reg  [1:0] q;
    input wire  clock;

    // Enums
    localparam AnswerState$Client = 0;
    localparam AnswerState$Beats = 1;
    localparam AnswerState$Status = 2;
    localparam AnswerState$Data = 3;

    // Update code (custom)
    initial begin
       q = 64'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$memory$answer


module tw_board$memory$answer_client(d,q,clock);

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

endmodule // tw_board$memory$answer_client


module tw_board$memory$answer_error(d,q,clock);

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

endmodule // tw_board$memory$answer_error


module tw_board$memory$beat(d,q,clock);

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

endmodule // tw_board$memory$beat


module tw_board$memory$beats_left(d,q,clock);

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

endmodule // tw_board$memory$beats_left


module tw_board$memory$client(d,q,clock);

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

endmodule // tw_board$memory$client


module tw_board$memory$is_write(d,q,clock);

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

endmodule // tw_board$memory$is_write


module tw_board$memory$len(d,q,clock);

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

endmodule // tw_board$memory$len


module tw_board$memory$received(d,q,clock);

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

endmodule // tw_board$memory$received


module tw_board$memory$request(d,q,clock);

    // Module arguments
    input wire  [2:0] d;
    output reg  [2:0] q;
    input wire  clock;

    // Enums
    localparam RequestState$Idle = 0;
    localparam RequestState$Client = 1;
    localparam RequestState$Address = 2;
    localparam RequestState$Beats = 3;
    localparam RequestState$FirstStrobes = 4;
    localparam RequestState$Data = 5;
    localparam RequestState$LastStrobes = 6;

    // Update code (custom)
    initial begin
       q = 64'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$memory$request


module tw_board$memory$sent(d,q,clock);

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

endmodule // tw_board$memory$sent


module tw_board$status(clock,reset,refused,from_bridge$valid,from_bridge$write,from_bridge$addr,from_bridge$wdata,from_bridge$rdata,to_core$valid,to_core$write,to_core$addr,to_core$wdata,to_core$rdata,leds);

    // Module arguments
    input wire  clock;
    input wire  reset;
    input wire  refused;
    input wire  from_bridge$valid;
    input wire  from_bridge$write;
    input wire  [11:0] from_bridge$addr;
    input wire  [31:0] from_bridge$wdata;
    output reg  [31:0] from_bridge$rdata;
    output reg  to_core$valid;
    output reg  to_core$write;
    output reg  [11:0] to_core$addr;
    output reg  [31:0] to_core$wdata;
    input wire  [31:0] to_core$rdata;
    output reg  [3:0] leds;

    // Constant declarations
    localparam  watch = 1'b0;
    localparam  status = 12'h14;

    // Stub signals
    reg  running$d;
    wire  running$q;
    reg  running$clock;
    reg  trapped$d;
    wire  trapped$q;
    reg  trapped$clock;
    reg  [23:0] count$d;
    wire  [23:0] count$q;
    reg  count$clock;

    // Sub module instances
    tw_board$status$running running(
        .d(running$d),
        .q(running$q),
        .clock(running$clock)
    );
    tw_board$status$trapped trapped(
        .d(trapped$d),
        .q(trapped$q),
        .clock(trapped$clock)
    );
    tw_board$status$count count(
        .d(count$d),
        .q(count$q),
        .clock(count$clock)
    );

    // Update code
    always @(*) begin
        running$clock = clock;
        trapped$clock = clock;
        count$clock = clock;
        running$d = running$q;
        trapped$d = trapped$q;
        count$d = count$q;
        to_core$valid = from_bridge$valid;
        to_core$write = from_bridge$write;
        to_core$addr = from_bridge$addr;
        to_core$wdata = from_bridge$wdata;
        from_bridge$rdata = to_core$rdata;
        if (watch && ~from_bridge$valid) begin
            to_core$valid = 1'b1;
            to_core$write = 1'b0;
            to_core$addr = status;
            running$d = to_core$rdata[32'h0];
            trapped$d = to_core$rdata[32'h1];
        end
        count$d = count$q + 32'h1;
        leds = (((count$q >> 32'h17) & 4'hf) << 32'h3) | (((refused) & 4'hf) << 32'h2) | (((trapped$q) & 4'hf) << 32'h1) | ((running$q) & 4'hf);
        if (reset) begin
            running$d = 1'b0;
            trapped$d = 1'b0;
        end
    end

endmodule // tw_board$status


module tw_board$status$count(d,q,clock);

    // Module arguments
    input wire  [23:0] d;
    output reg  [23:0] q;
    input wire  clock;

    // Update code (custom)
    initial begin
       q = 24'h0;
    end

    always @(posedge clock) begin
       q <= d;
    end

endmodule // tw_board$status$count


module tw_board$status$running(d,q,clock);

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

endmodule // tw_board$status$running


module tw_board$status$trapped(d,q,clock);

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

endmodule // tw_board$status$trapped
