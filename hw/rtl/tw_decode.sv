`include "tw_fields.svh"

// Instruction decoder: the unit of an instruction, and whether this configuration can run it.
//
// The rules are those of `illegal_reasons` in hw/src/isa/legal.rs.
module tw_decode (
  input  logic         valid_i,
  input  logic [255:0] insn_i,
  output logic [1:0]   unit_o,
  output logic         bad_opcode_o,
  output logic         bad_field_o
);

  localparam logic [19:0] AlignMask = 20'(tw_cfg_pkg::DmaAlign - 1);

  ////////////
  // Fields //
  ////////////

  logic [3:0]   opcode, pop_mask, push_mask, kind;
  logic [239:0] body;
  assign opcode    = insn_i[3:0];
  assign pop_mask  = insn_i[7:4];
  assign push_mask = insn_i[11:8];
  assign kind      = insn_i[15:12];
  assign body      = insn_i[255:16];

  // Helpers. `packable`: the memory can be loaded or stored byte by byte.
  function automatic logic misaligned(input logic [tw_cfg_pkg::OffsetBits-1:0] value);
    misaligned = (value & tw_cfg_pkg::OffsetBits'(AlignMask)) != '0;
  endfunction

  function automatic logic packable(input logic [2:0] mem);
    packable = mem == tw_isa_pkg::MemInp || mem == tw_isa_pkg::MemOut;
  endfunction

  function automatic logic byte_outside(input logic [2:0] mem, input logic [tw_cfg_pkg::PackByteW-1:0] at);
    unique case (mem)
      tw_isa_pkg::MemInp: byte_outside = 32'(at) >= tw_cfg_pkg::InpEntryBytes;
      tw_isa_pkg::MemOut: byte_outside = 32'(at) >= tw_cfg_pkg::OutEntryBytes;
      default:            byte_outside = at != '0;
    endcase
  endfunction

  /////////////////////////////
  // Checks, unit after unit //
  /////////////////////////////

  // Simulators skip a check while there is no instruction of its unit.
  logic load_bad, gemm_bad, vector_bad, store_bad, reserved, reaches_inp;
  assign reaches_inp = tw_cfg_pkg::VectorReachesInp != 0;

  always_comb begin
    load_bad = 1'b0;
    if (valid_i && opcode == tw_isa_pkg::OpLoad) begin
      load_bad = `TW_FIELD(load, row_bytes, body) == '0 || `TW_FIELD(load, rows, body) == '0 ||
                 `TW_FIELD(load, planes, body) == '0 || `TW_FIELD(load, mem, body) == 3'd7 ||
                 misaligned(`TW_FIELD(load, offset, body)) ||
                 misaligned(tw_cfg_pkg::OffsetBits'(`TW_FIELD(load, row_stride, body))) ||
                 misaligned(tw_cfg_pkg::OffsetBits'(`TW_FIELD(load, plane_stride, body)));
      if (`TW_FIELD(load, pack, body)) begin
        load_bad = load_bad || !packable(`TW_FIELD(load, mem, body)) ||
                   byte_outside(`TW_FIELD(load, mem, body), `TW_FIELD(load, pack_byte, body));
      end else begin
        load_bad = load_bad || `TW_FIELD(load, fill, body) || `TW_FIELD(load, pack_byte, body) != '0 ||
                   `TW_FIELD(load, pack_row_stride, body) != '0 || `TW_FIELD(load, pack_plane_stride, body) != '0;
      end
    end
  end

  always_comb begin
    store_bad = 1'b0;
    if (valid_i && opcode == tw_isa_pkg::OpStore) begin
      store_bad = `TW_FIELD(store, row_bytes, body) == '0 || `TW_FIELD(store, rows, body) == '0 ||
                  `TW_FIELD(store, planes, body) == '0 || !packable(`TW_FIELD(store, mem, body)) ||
                  misaligned(`TW_FIELD(store, offset, body)) ||
                  misaligned(tw_cfg_pkg::OffsetBits'(`TW_FIELD(store, row_stride, body))) ||
                  misaligned(tw_cfg_pkg::OffsetBits'(`TW_FIELD(store, plane_stride, body)));
      if (`TW_FIELD(store, pack, body)) begin
        store_bad = store_bad || byte_outside(`TW_FIELD(store, mem, body), `TW_FIELD(store, pack_byte, body));
      end else begin
        store_bad = store_bad || `TW_FIELD(store, pack_byte, body) != '0 ||
                    `TW_FIELD(store, pack_row_stride, body) != '0 || `TW_FIELD(store, pack_plane_stride, body) != '0;
      end
    end
  end

  always_comb begin
    gemm_bad = 1'b0;
    if (valid_i && opcode == tw_isa_pkg::OpGemm) begin
      gemm_bad = `TW_FIELD(gemm, uops, body) == '0 || `TW_FIELD(gemm, count0, body) == '0 ||
                 `TW_FIELD(gemm, count1, body) == '0 || `TW_FIELD(gemm, count2, body) == '0;
    end
  end

  logic [4:0] op;
  logic [2:0] a, b;
  always_comb begin
    vector_bad = 1'b0;
    op = '0;
    a = '0;
    b = '0;
    if (valid_i && opcode == tw_isa_pkg::OpVector) begin
      op = `TW_FIELD(vector, op, body);
      a = {1'b0, `TW_FIELD(vector, a, body)};
      b = `TW_FIELD(vector, b, body);
      vector_bad = `TW_FIELD(vector, uops, body) == '0 || `TW_FIELD(vector, count0, body) == '0 ||
                `TW_FIELD(vector, count1, body) == '0 || `TW_FIELD(vector, count2, body) == '0;
      if (!tw_cfg_pkg::VecsBuilt[op]) vector_bad = 1'b1;
      if (`TW_FIELD(vector, mode, body) && !tw_isa_pkg::VecsWithMode[op]) vector_bad = 1'b1;
      if (`TW_FIELD(vector, dst, body) == 2'd3 || a == tw_isa_pkg::SrcParam || b > tw_isa_pkg::SrcNone) vector_bad = 1'b1;
      if (!reaches_inp && ({1'b0, `TW_FIELD(vector, dst, body)} == tw_isa_pkg::SrcInp || a == tw_isa_pkg::SrcInp ||
                     b == tw_isa_pkg::SrcInp)) vector_bad = 1'b1;
      unique case (op)
        tw_isa_pkg::VecMac: begin
          if ({1'b0, `TW_FIELD(vector, dst, body)} != tw_isa_pkg::SrcAcc || b != tw_isa_pkg::SrcParam ||
              (a != tw_isa_pkg::SrcOut && a != tw_isa_pkg::SrcInp)) vector_bad = 1'b1;
        end
        tw_isa_pkg::VecRequant: if (b != tw_isa_pkg::SrcParam) vector_bad = 1'b1;
        tw_isa_pkg::VecMul, tw_isa_pkg::VecQadd: begin
          if ((a != tw_isa_pkg::SrcOut && a != tw_isa_pkg::SrcInp) ||
              (b != tw_isa_pkg::SrcOut && b != tw_isa_pkg::SrcInp)) vector_bad = 1'b1;
        end
        default: if ((b != tw_isa_pkg::SrcNone) != tw_isa_pkg::VecsWithB[op]) vector_bad = 1'b1;
      endcase
    end
  end

  ////////////
  // Result //
  ////////////

  always_comb begin
    unit_o = 2'd0;
    bad_opcode_o = 1'b0;
    bad_field_o = 1'b0;
    reserved = 1'b0;
    if (valid_i) unique case (opcode)
      tw_isa_pkg::OpLoad: begin
        reserved = |(body >> tw_cfg_pkg::LoadBodyW);
        bad_field_o = load_bad;
      end
      tw_isa_pkg::OpGemm: begin
        unit_o = 2'd1;
        reserved = |(body >> tw_cfg_pkg::GemmBodyW);
        bad_field_o = gemm_bad;
      end
      tw_isa_pkg::OpVector: begin
        unit_o = 2'd2;
        reserved = |(body >> tw_cfg_pkg::VectorBodyW);
        bad_field_o = vector_bad;
      end
      tw_isa_pkg::OpStore: begin
        unit_o = 2'd3;
        reserved = |(body >> tw_cfg_pkg::StoreBodyW);
        bad_field_o = store_bad;
      end
      default: bad_opcode_o = 1'b1;
    endcase
    if (valid_i && (kind != '0 || reserved || pop_mask[unit_o] || push_mask[unit_o])) bad_field_o = 1'b1;
  end

endmodule
