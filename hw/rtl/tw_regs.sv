`include "tw_assert.svh"

// Host registers and the command ring.
//
// Starts the commands of the ring one after the other, counts their cycles and retired instructions, and keeps the trap
// of a command until the host resets the units.
module tw_regs (
  input  logic clk_i,
  input  logic rst_ni,

  // Register accesses of the host
  input  logic        reg_valid_i,
  input  logic        reg_write_i,
  input  logic [11:0] reg_addr_i,
  input  logic [31:0] reg_wdata_i,
  output logic [31:0] reg_rdata_o,
  output logic        irq_o,

  // Base registers of load and store
  input  logic [tw_cfg_pkg::BaseW-1:0] load_base_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] load_base_addr_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] load_base_limit_o,
  input  logic [tw_cfg_pkg::BaseW-1:0] store_base_i,
  output logic [tw_cfg_pkg::OffsetBits-1:0] store_base_addr_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] store_base_limit_o,

  // Commands
  output logic                              start_o,
  output logic [tw_cfg_pkg::OffsetBits-1:0] stream_addr_o,
  output logic [tw_cfg_pkg::CountW-1:0]     stream_insns_o,
  output logic                              running_o,
  input  logic                              finished_i,
  output logic                              unit_rst_no,
  output logic                              stop_o,
  // No request is under way on the bus
  input  logic                              quiet_i,

  // Traps of load, gemm, vector, store and fetch
  input  logic [4:0]                       trap_i,
  input  logic [19:0]                      trap_cause_i,
  // Low bits of the trapping instructions' ordinals
  input  logic [5*tw_cfg_pkg::FlightW-1:0] trap_ordinal_i,

  // By unit, whether an instruction retires; the number of instructions handed out
  input  logic [3:0]                      retire_i,
  input  logic [tw_cfg_pkg::CountW-1:0]   fetched_i,
  // Retired instructions of the command, by unit
  output logic [4*tw_cfg_pkg::CountW-1:0] retired_o,
  input  logic [19:0]                     states_i
);

  localparam int unsigned OffsetBits = tw_cfg_pkg::OffsetBits;
  localparam int unsigned Bases = tw_cfg_pkg::Bases;
  localparam int unsigned CountW = tw_cfg_pkg::CountW;
  localparam int unsigned CycleW = tw_cfg_pkg::CycleW;
  localparam int unsigned FlightW = tw_cfg_pkg::FlightW;

  logic                                         write;
  // This cycle counts
  logic                                         counting /*verilator public_flat_rd*/;
  logic                                         running_q /*verilator public_flat_rd*/;
  logic                                         irq_enable_q, irq_q, trapped_q, reset_q, unit_rst_q;
  // Units must not start or request anything: after a trap, and until a reset is done.
  logic                                         stop_q;
  // The low five bits of a stream address are zero.
  logic [OffsetBits-1:5]                        stream_addr_q;
  logic [CycleW-1:0]                            cycle_q;
  logic [CountW-1:0]                            stream_insns_q;
  logic [FlightW-1:0]                           trap_ahead_q;
  logic [31:0]                                  completion_q;
  logic [3:0]                                   trap_cause_q;
  logic [2:0]                                   trap_unit_q;
  logic [6:0]                                   select_q;
  logic                                         doorbell_rings, ring_empty, ring_full, begin_command;
  logic [$clog2(tw_cfg_pkg::RingEntries+1)-1:0] ring_count;
  logic [OffsetBits+CountW-6:0]                 ring_head, staged, command;

  function automatic logic [31:0] high_word(input logic [OffsetBits-1:0] value);
    high_word = 32'(64'(value) >> 32);
  endfunction

  logic [OffsetBits-1:0] stream_addr;
  assign stream_addr = {stream_addr_q, 5'd0};

  assign write = reg_valid_i && reg_write_i;
  assign counting = running_q && !trapped_q;

  ////////////////////
  // Base registers //
  ////////////////////

  // Base registers start at RegBase and have 16 bytes each: address and limit, 64 bits each.
  logic                         host_base_hit;
  logic [7:0]                   host_base_index;
  logic [tw_cfg_pkg::BaseW-1:0] host_base;
  logic [OffsetBits-1:0]        host_base_addr, host_base_limit;
  always_comb begin
    host_base_index = '0;
    host_base_hit   = 1'b0;
    host_base       = '0;
    if (reg_valid_i) begin
      host_base_index = reg_addr_i[11:4] - tw_isa_pkg::RegBase[11:4];
      host_base_hit   = reg_addr_i[11:4] >= tw_isa_pkg::RegBase[11:4] && 32'(host_base_index) < Bases;
      host_base       = host_base_index[tw_cfg_pkg::BaseW-1:0];
    end
  end

  if (tw_cfg_pkg::Lean != 0) begin : gen_base_memories
    // A memory with registered reads will do: a base is constant while a stream runs, and its number is at the head of
    // the queue a cycle before it is used.
    localparam int unsigned WordW = OffsetBits > 32 ? 32 : OffsetBits;
    localparam int unsigned Words = OffsetBits > 32 ? 4 : 2;
    (* no_rw_check, ram_style = "block" *)
    logic [Words*WordW-1:0] mem [Bases];
    logic [Words*WordW-1:0] load_words, store_words;
    logic [Words-1:0]       word_written;
    always_comb begin
      for (int unsigned k = 0; k < Words; k++) word_written[k] = 32'(reg_addr_i[3:2]) == k * (4 / Words);
    end
    // One write of the whole entry: synthesis tools infer write enables from the parts that stay.
    always_ff @(posedge clk_i) begin
      if (write && host_base_hit) begin
        automatic logic [Words*WordW-1:0] entry = mem[host_base];
        for (int unsigned k = 0; k < Words; k++) begin
          if (word_written[k]) entry[k*WordW +: WordW] = WordW'(reg_wdata_i);
        end
        mem[host_base] <= entry;
      end
    end
    always_ff @(posedge clk_i) begin
      load_words  <= mem[load_base_i];
      store_words <= mem[store_base_i];
    end
    assign load_base_addr_o   = OffsetBits'(load_words[0 +: Words*WordW/2]);
    assign load_base_limit_o  = OffsetBits'(load_words[Words*WordW/2 +: Words*WordW/2]);
    assign store_base_addr_o  = OffsetBits'(store_words[0 +: Words*WordW/2]);
    assign store_base_limit_o = OffsetBits'(store_words[Words*WordW/2 +: Words*WordW/2]);
    assign host_base_addr     = '0;
    assign host_base_limit    = '0;
    logic unused_words;
    assign unused_words = ^{load_words, store_words};
  end else begin : gen_base_registers
    logic [OffsetBits-1:0] base_addr_q [Bases];
    logic [OffsetBits-1:0] base_limit_q [Bases];
    assign load_base_addr_o   = base_addr_q[load_base_i];
    assign load_base_limit_o  = base_limit_q[load_base_i];
    assign store_base_addr_o  = base_addr_q[store_base_i];
    assign store_base_limit_o = base_limit_q[store_base_i];
    assign host_base_addr     = reg_valid_i ? base_addr_q[host_base] : '0;
    assign host_base_limit    = reg_valid_i ? base_limit_q[host_base] : '0;
    always_ff @(posedge clk_i) begin
      if (write && host_base_hit) begin
        unique case (reg_addr_i[3:2])
          2'd0: base_addr_q[host_base] <= OffsetBits'({high_word(host_base_addr), reg_wdata_i});
          2'd1: base_addr_q[host_base] <= OffsetBits'({reg_wdata_i, 32'(host_base_addr)});
          2'd2: base_limit_q[host_base] <= OffsetBits'({high_word(host_base_limit), reg_wdata_i});
          default: base_limit_q[host_base] <= OffsetBits'({reg_wdata_i, 32'(host_base_limit)});
        endcase
      end
    end
  end

  //////////////
  // Commands //
  //////////////

  // The doorbell starts an idle device in the same cycle, otherwise the command waits in the ring.
  assign staged         = {stream_insns_q, stream_addr_q};
  assign doorbell_rings = write && reg_addr_i == tw_isa_pkg::RegDoorbell && !ring_full && !trapped_q && !reset_q && unit_rst_q;
  assign begin_command  = !running_q && !trapped_q && !reset_q && unit_rst_q && (doorbell_rings || !ring_empty);
  assign command        = ring_empty ? staged : ring_head;
  assign start_o        = begin_command;
  assign stream_addr_o  = {command[OffsetBits-6:0], 5'd0};
  assign stream_insns_o = command[OffsetBits-5 +: CountW];
  assign running_o      = running_q;
  assign stop_o         = stop_q;
  assign unit_rst_no    = unit_rst_q;

  tw_fifo #(
    .Width(OffsetBits - 5 + CountW),
    .Depth(tw_cfg_pkg::RingEntries),
    .Head (tw_cfg_pkg::Lean == 0)
  ) u_ring (
    .clk_i,
    .rst_ni (unit_rst_q),
    .push_i (doorbell_rings && !(begin_command && ring_empty)),
    .data_i (staged),
    .pop_i  (begin_command && !ring_empty),
    .data_o (ring_head),
    .empty_o(ring_empty),
    .full_o (ring_full),
    .count_o(ring_count)
  );

  /////////////////////////////////
  // Traps, completion and reset //
  /////////////////////////////////

  // Units stop in the cycle after a trap. The traps are registered, and the first one is chosen in that cycle.
  logic [4:0]           traps_q;
  logic [19:0]          causes_q;
  logic [5*FlightW-1:0] ordinals_q;
  logic                 any_trap, settle_q;
  logic [2:0]           first_trap;
  assign any_trap = |trap_i;
  always_ff @(posedge clk_i) begin
    traps_q    <= trap_i;
    causes_q   <= trap_cause_i;
    ordinals_q <= trap_ordinal_i;
  end
  always_comb begin
    first_trap = '0;
    for (int unsigned u = 0; u < 5; u++) begin
      if (traps_q[4 - u]) first_trap = 3'(4 - u);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      irq_enable_q <= 1'b0;
      irq_q        <= 1'b0;
      running_q    <= 1'b0;
      trapped_q    <= 1'b0;
      reset_q      <= 1'b0;
      unit_rst_q   <= 1'b0;
      completion_q <= '0;
      trap_cause_q <= '0;
      cycle_q      <= '0;
      settle_q     <= 1'b0;
      stop_q       <= 1'b1;
    end else begin
      unit_rst_q <= 1'b1;
      stop_q     <= trapped_q || reset_q;
      settle_q   <= counting && any_trap;
      if (settle_q) trap_cause_q <= causes_q[32'(first_trap)*4 +: 4];
      if (write && reg_addr_i == tw_isa_pkg::RegControl) begin
        irq_enable_q <= reg_wdata_i[1];
        if (reg_wdata_i[0]) begin
          reset_q <= 1'b1;
          stop_q  <= 1'b1;
        end
      end
      if (write && reg_addr_i == tw_isa_pkg::RegIrqClear) irq_q <= 1'b0;
      if (counting) cycle_q <= cycle_q + 1'b1;
      if (begin_command) begin
        running_q <= 1'b1;
        cycle_q   <= CycleW'(1);
      end else if (counting && any_trap) begin
        trapped_q <= 1'b1;
        stop_q    <= 1'b1;
      end else if (running_q && trapped_q && quiet_i) begin
        running_q <= 1'b0;
        irq_q     <= 1'b1;
      end else if (running_q && finished_i) begin
        running_q    <= 1'b0;
        completion_q <= completion_q + 1'b1;
        irq_q        <= 1'b1;
      end
      // A soft reset waits until no request is under way, then resets every unit for one cycle.
      if (reset_q && quiet_i && unit_rst_q) begin
        reset_q      <= 1'b0;
        unit_rst_q   <= 1'b0;
        stop_q       <= 1'b1;
        running_q    <= 1'b0;
        trapped_q    <= 1'b0;
        trap_cause_q <= '0;
        completion_q <= '0;
        irq_q        <= 1'b0;
      end
    end
  end

  // The ordinal of a trapping instruction is kept as its distance from the number of finished ones, those of the trap's
  // cycle included.
  logic [5*CountW-1:0] done_counts;
  assign done_counts = {fetched_i, retired_o};

  always_ff @(posedge clk_i) begin
    if (settle_q) begin
      trap_unit_q  <= first_trap;
      trap_ahead_q <= ordinals_q[32'(first_trap)*FlightW +: FlightW] - FlightW'(done_counts[32'(first_trap)*CountW +: CountW]);
    end
  end

  // Retired instructions by unit. Nothing retires in a command's first cycle, and retirement after a trap does not
  // count.
  for (genvar u = 0; u < 4; u++) begin : gen_retired
    logic [CountW-1:0] count_q /*verilator public_flat_rd*/;
    always_ff @(posedge clk_i) begin
      if (begin_command) count_q <= '0;
      else if (retire_i[u] && !trapped_q) count_q <= count_q + 1'b1;
    end
    assign retired_o[u*CountW +: CountW] = count_q;
  end

  always_ff @(posedge clk_i) begin
    if (write) begin
      if (reg_addr_i == tw_isa_pkg::RegStreamAddrLo) stream_addr_q <= (OffsetBits-5)'({high_word(stream_addr), reg_wdata_i} >> 5);
      if (reg_addr_i == tw_isa_pkg::RegStreamAddrHi) stream_addr_q <= (OffsetBits-5)'({reg_wdata_i, 32'(stream_addr)} >> 5);
      if (reg_addr_i == tw_isa_pkg::RegStreamInsns) stream_insns_q <= CountW'(reg_wdata_i);
      if (reg_addr_i == tw_isa_pkg::RegCounterSelect) select_q <= reg_wdata_i[6:0];
    end
  end

  ////////////////////
  // Cycle counters //
  ////////////////////

  // A counter for each state of each unit, or only for busy cycles. The states are late, so a cycle is counted in the
  // next.
  logic [31:0] counter;
  logic        counting_q;
  logic [19:0] states_q;
  always_ff @(posedge clk_i) begin
    counting_q <= counting;
    states_q   <= states_i;
  end
  if (tw_cfg_pkg::CounterLevel == 2) begin : gen_causes
    logic [31:0] selected [5];
    for (genvar u = 0; u < 5; u++) begin : gen_unit
      logic [31:0] counts_q [16];
      logic [3:0]  state;
      assign state = states_q[u*4 +: 4];
      always_ff @(posedge clk_i) begin
        if (begin_command) begin
          // In cycle 0, the doorbell's, every unit is empty.
          for (int unsigned k = 0; k < 16; k++) counts_q[k] <= k == 32'(tw_isa_pkg::StateEmpty) ? 32'd1 : '0;
        end else if (counting_q) begin
          counts_q[state] <= counts_q[state] + 1'b1;
        end
      end
      assign selected[u] = reg_valid_i && select_q[6:4] == 3'(u) ? counts_q[select_q[3:0]] : '0;
    end
    assign counter = selected[0] | selected[1] | selected[2] | selected[3] | selected[4];
  end else if (tw_cfg_pkg::CounterLevel == 1) begin : gen_busy
    logic [31:0] counts_q [5];
    always_ff @(posedge clk_i) begin
      for (int unsigned u = 0; u < 5; u++) begin
        if (begin_command) counts_q[u] <= '0;
        else if (counting_q && states_q[u*4 +: 4] == tw_isa_pkg::StateBusy) counts_q[u] <= counts_q[u] + 1'b1;
      end
    end
    assign counter = (select_q[6:4] < 3'd5 && select_q[3:0] == tw_isa_pkg::StateBusy) ? counts_q[select_q[6:4]] : '0;
  end else begin : gen_none
    logic unused_states;
    assign unused_states = ^{states_q, counting_q, select_q};
    assign counter = '0;
  end

  ////////////////////
  // Register reads //
  ////////////////////

  // Finished instructions of the unit that trapped, or of the unit whose register is read. A trap's cycle is the last
  // one that counted.
  logic [CountW-1:0] count, ordinal;
  logic [CycleW-1:0] cycle;
  logic [2:0]        count_unit;
  logic              reads_trap_ordinal;
  assign reads_trap_ordinal = reg_addr_i == tw_isa_pkg::RegTrapOrdinal;
  assign cycle              = cycle_q - CycleW'(reg_addr_i == tw_isa_pkg::RegTrapCycleLo ||
                                                 reg_addr_i == tw_isa_pkg::RegTrapCycleHi);
  assign ordinal            = count + (CountW'($signed(trap_ahead_q)) & {CountW{reads_trap_ordinal}});
  assign count_unit         = reads_trap_ordinal ? trap_unit_q : {1'b0, reg_addr_i[3:2]};
  always_comb begin
    count = '0;
    if (reg_valid_i) count = done_counts[32'(count_unit)*CountW +: CountW];
  end

  always_comb begin
    reg_rdata_o = '0;
    if (reg_valid_i) unique case (reg_addr_i)
      tw_isa_pkg::RegId:            reg_rdata_o = tw_isa_pkg::IdValue;
      tw_isa_pkg::RegIsaVersion:    reg_rdata_o = tw_isa_pkg::IsaVersion;
      tw_isa_pkg::RegConfigHashLo:  reg_rdata_o = tw_cfg_pkg::ConfigHash[31:0];
      tw_isa_pkg::RegConfigHashHi:  reg_rdata_o = tw_cfg_pkg::ConfigHash[63:32];
      tw_isa_pkg::RegControl:       reg_rdata_o = {30'd0, irq_enable_q, reset_q};
      tw_isa_pkg::RegStatus:        reg_rdata_o = {16'd0, 8'(tw_cfg_pkg::RingEntries) - 8'(ring_count), 5'd0, irq_q,
                                                   trapped_q, running_q || reset_q || !unit_rst_q || (!ring_empty && !trapped_q)};
      tw_isa_pkg::RegStreamAddrLo:  reg_rdata_o = 32'(stream_addr);
      tw_isa_pkg::RegStreamAddrHi:  reg_rdata_o = high_word(stream_addr);
      tw_isa_pkg::RegStreamInsns:   reg_rdata_o = 32'(stream_insns_q);
      tw_isa_pkg::RegCompletion:    reg_rdata_o = completion_q;
      tw_isa_pkg::RegCyclesLo, tw_isa_pkg::RegTrapCycleLo: reg_rdata_o = 32'(cycle);
      tw_isa_pkg::RegCyclesHi, tw_isa_pkg::RegTrapCycleHi: reg_rdata_o = 32'(64'(cycle) >> 32);
      tw_isa_pkg::RegTrapCause:     reg_rdata_o = 32'(trap_cause_q);
      tw_isa_pkg::RegTrapUnit:      reg_rdata_o = 32'(trap_unit_q);
      tw_isa_pkg::RegTrapOrdinal:   reg_rdata_o = 32'(ordinal);
      tw_isa_pkg::RegCounterSelect: reg_rdata_o = 32'(select_q);
      tw_isa_pkg::RegCounter:       reg_rdata_o = counter;
      default: begin
        if (reg_addr_i[11:4] == tw_isa_pkg::RegRetired[11:4]) reg_rdata_o = 32'(ordinal);
        if (host_base_hit && tw_cfg_pkg::Lean == 0) begin
          unique case (reg_addr_i[3:2])
            2'd0: reg_rdata_o = 32'(host_base_addr);
            2'd1: reg_rdata_o = high_word(host_base_addr);
            2'd2: reg_rdata_o = 32'(host_base_limit);
            default: reg_rdata_o = high_word(host_base_limit);
          endcase
        end
      end
    endcase
  end

  assign irq_o = irq_q && irq_enable_q;

  ////////////////
  // Assertions //
  ////////////////

  // A command starts only on an idle device, and its units are out of reset.
  `TW_ASSERT(StartWhenIdle_A, !start_o || (!running_o && unit_rst_no))
  `TW_ASSERT(TrapStops_A, !trapped_q || stop_o)
  `TW_ASSERT(ResetStops_A, unit_rst_no || stop_o)

endmodule
