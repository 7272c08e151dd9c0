// tw_bursts beside the request that it was given: its bursts are the request's beats, each once and in order. Addresses
// and requests are as wide as the configuration's.
//
// A request does not pass the end of the address space: a base's end lies inside it.
module tw_bursts_formal #(
  // As fetch has it, whose row is a whole stream.
  parameter bit          Fetch = 1'b0,
  parameter int unsigned AddrW = tw_cfg_pkg::OffsetBits,
  parameter int unsigned BusBytes = tw_cfg_pkg::BusBytes,
  parameter int unsigned MaxBeats = Fetch ? tw_cfg_pkg::FetchBurstBeats : tw_cfg_pkg::MaxBurstBeats,
  parameter int unsigned BytesW = Fetch ? 37 : 16
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              row_valid_i,
  input logic [AddrW-1:0]  row_addr_i,
  input logic [BytesW-1:0] row_bytes_i,
  input logic              row_last_i,
  input logic              burst_take_i
);

  localparam int unsigned Log = $clog2(BusBytes);
  localparam int unsigned PageLog = $clog2(tw_isa_pkg::PageBytes);

  logic             row_ready, burst_valid, burst_last, take_row, take_burst;
  logic [AddrW-1:0] burst_addr;
  logic [8:0]       burst_beats;

  tw_bursts #(.AddrW(AddrW), .BusBytes(BusBytes), .MaxBeats(MaxBeats), .BytesW(BytesW)) u_dut (
    .clk_i, .rst_ni, .row_valid_i, .row_addr_i, .row_bytes_i, .row_last_i, .row_ready_o(row_ready),
    .burst_valid_o(burst_valid), .burst_addr_o(burst_addr), .burst_beats_o(burst_beats), .burst_last_o(burst_last),
    .burst_take_i
  );
  assign take_row = row_valid_i && row_ready;
  assign take_burst = burst_valid && burst_take_i;

  // The request in beats of the whole address space: the next that is to be asked for, and the first behind the last.
  // One bit more than an address, so that nothing wraps.
  logic             busy_q, last_q;
  logic [AddrW:0]   next_q, end_q, first_byte, past_byte, burst_end, burst_first_byte, burst_last_byte;
  assign first_byte = (AddrW+1)'(row_addr_i);
  assign past_byte  = (AddrW+1)'(row_addr_i) + (AddrW+1)'(row_bytes_i);
  assign burst_end  = next_q + (AddrW+1)'(burst_beats);
  assign burst_first_byte = (AddrW+1)'(burst_addr);
  assign burst_last_byte  = (AddrW+1)'(burst_addr) + ((AddrW+1)'(burst_beats) << Log) - 1'b1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q <= 1'b0;
    end else begin
      if (take_row) busy_q <= 1'b1;
      else if (take_burst && burst_end == end_q) busy_q <= 1'b0;
    end
    if (take_row) begin
      next_q <= first_byte >> Log;
      end_q  <= ((past_byte - 1'b1) >> Log) + 1'b1;
      last_q <= row_last_i;
    end else if (take_burst) begin
      next_q <= burst_end;
    end
  end

  logic started_q = 1'b0;
  always_ff @(posedge clk_i) started_q <= 1'b1;

  always @(posedge clk_i) begin
    if (!started_q) assume (!rst_ni);
    if (row_valid_i) assume (row_bytes_i != '0 && past_byte <= (AddrW+1)'(1) << AddrW);
    assume (!burst_take_i || burst_valid);
    if (rst_ni) begin
      // A burst stands as long as a part of the request is left, and the next request is taken with its last burst.
      Stands_A: assert (burst_valid == busy_q);
      Ready_A: assert (row_ready == (!busy_q || (burst_take_i && burst_end == end_q)));
      if (burst_valid) begin
        NotEmpty_A: assert (burst_beats != '0);
        AtMostTheLimit_A: assert (32'(burst_beats) <= MaxBeats);
        InOrder_A: assert (burst_first_byte == next_q << Log);
        InsideRequest_A: assert (burst_end <= end_q);
        InsidePage_A: assert (burst_first_byte[AddrW:PageLog] == burst_last_byte[AddrW:PageLog]);
        // No shorter than it has to be.
        AsLongAsItMay_A: assert (32'(burst_beats) == MaxBeats || burst_end == end_q || burst_last_byte[PageLog-1:0] == '1);
        OneLast_A: assert (burst_last == (last_q && burst_end == end_q));
      end
      // For the proofs by induction.
      if (busy_q) begin
        Left_I: assert (next_q < end_q && (AddrW+1)'(u_dut.beats_q) == end_q - next_q && end_q <= (AddrW+1)'(1) << (AddrW - Log));
        Last_I: assert (u_dut.last_q == last_q);
        Ends_I: assert (u_dut.ends_q == (burst_end == end_q));
      end
      Pages_C: cover (burst_valid && end_q - next_q > (AddrW+1)'(3 * MaxBeats) && burst_first_byte[AddrW:PageLog] != '0);
      Cut_C: cover (take_burst && burst_last_byte[PageLog-1:0] == '1 && burst_end != end_q && 32'(burst_beats) < MaxBeats);
      Back_C: cover (take_burst && take_row);
      Top_C: cover (take_burst && end_q == (AddrW+1)'(1) << (AddrW - Log));
    end
  end

endmodule
