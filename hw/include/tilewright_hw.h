/* Registers and codes of the accelerator. Written from the tables in hw/src; do not edit. */
#ifndef TILEWRIGHT_HW_H
#define TILEWRIGHT_HW_H

#define TW_ISA_VERSION_VALUE 0x1u
#define TW_ID_VALUE 0x54574c54u
#define TW_INSN_BYTES 0x20u
#define TW_REG_ID 0x0u /* 0x54574c54, the letters TLWT */
#define TW_REG_ISA_VERSION 0x4u /* version of the instruction set */
#define TW_REG_CONFIG_HASH_LO 0x8u /* configuration hash, low half */
#define TW_REG_CONFIG_HASH_HI 0xcu /* configuration hash, high half */
#define TW_REG_CONTROL 0x10u /* bit 0: soft reset, clears itself; bit 1: interrupt enable */
#define TW_REG_STATUS 0x14u /* bit 0: busy; bit 1: trapped; bit 2: interrupt pending; bits 15 to 8: free entries of the command ring */
#define TW_REG_STREAM_ADDR_LO 0x18u /* address of the next command's stream, low half; 32-byte aligned */
#define TW_REG_STREAM_ADDR_HI 0x1cu /* address of the next command's stream, high half */
#define TW_REG_STREAM_INSNS 0x20u /* number of instructions in the next command's stream */
#define TW_REG_DOORBELL 0x24u /* any write puts the command into the ring; ignored if the ring is full or the device has trapped */
#define TW_REG_COMPLETION 0x28u /* commands completed since the last soft reset */
#define TW_REG_IRQ_CLEAR 0x2cu /* any write clears the pending interrupt */
#define TW_REG_CYCLES_LO 0x30u /* cycles of the current or last command, low half */
#define TW_REG_CYCLES_HI 0x34u /* cycles of the current or last command, high half */
#define TW_REG_TRAP_CAUSE 0x38u /* cause of the trap, 0 for none */
#define TW_REG_TRAP_UNIT 0x3cu /* unit of the trap: 0 load, 1 gemm, 2 vector, 3 store, 4 fetch */
#define TW_REG_TRAP_ORDINAL 0x40u /* ordinal of the trapping instruction in its unit, from 0; for fetch: in the stream */
#define TW_REG_TRAP_CYCLE_LO 0x44u /* cycle of the trap, low half */
#define TW_REG_TRAP_CYCLE_HI 0x48u /* cycle of the trap, high half */
#define TW_REG_RETIRED 0x50u /* instructions retired by load; the next three words are those of gemm, vector and store */
#define TW_REG_COUNTER_SELECT 0x60u /* selects the counter: unit x 16 + state */
#define TW_REG_COUNTER 0x64u /* the selected counter */
#define TW_REG_BASE 0x100u /* 16 bytes per base register: address low, address high, limit low, limit high; with lean, reads return zero */
#define TW_CONTROL_RESET 0x1u
#define TW_CONTROL_IRQ_ENABLE 0x2u
#define TW_STATUS_BUSY 0x1u
#define TW_STATUS_TRAPPED 0x2u
#define TW_OP_LOAD 0x1u /* Copies rows of bytes from DRAM into a memory, with optional padding. */
#define TW_OP_GEMM 0x2u /* Multiplies inp entries by wgt tiles and writes or adds to acc, one micro-op per cycle. */
#define TW_OP_VECTOR 0x3u /* Applies one element-wise operation to rows; destination and operands are indexed. */
#define TW_OP_STORE 0x4u /* Copies rows of bytes from inp or out to DRAM. */
#define TW_UNIT_LOAD 0x0u
#define TW_UNIT_GEMM 0x1u
#define TW_UNIT_VECTOR 0x2u
#define TW_UNIT_STORE 0x3u
#define TW_MEM_INP 0x0u
#define TW_MEM_WGT 0x1u
#define TW_MEM_ACC 0x2u
#define TW_MEM_OUT 0x3u
#define TW_MEM_PARAM 0x4u
#define TW_MEM_GUOP 0x5u
#define TW_MEM_VUOP 0x6u
#define TW_VEC_MOVE 0x0u /* First operand. */
#define TW_VEC_MIN 0x1u /* Smaller operand. */
#define TW_VEC_MAX 0x2u /* Larger operand. */
#define TW_VEC_ADD 0x3u /* Sum, wrapping. */
#define TW_VEC_SUB 0x4u /* Difference, wrapping. */
#define TW_VEC_SHR 0x5u /* Arithmetic shift right by the low five bits of `b`. */
#define TW_VEC_SHL 0x6u /* Shift left by the low five bits of `b`. */
#define TW_VEC_CLIP 0x7u /* First operand, clamped to the descriptor's bounds. */
#define TW_VEC_REQUANT 0x8u /* Adds the bias, multiplies, rounds, shifts, adds the zero point and clamps; `b` is param, zero point and bounds come from the descriptor. */
#define TW_VEC_MUL 0x9u /* Quantized product of two int8 rows by the descriptor's scales. */
#define TW_VEC_QADD 0xau /* Quantized sum of two int8 rows by the descriptor's scales, three passes. */
#define TW_VEC_MAC 0x10u /* dst plus the product of `a` and a row of param, each less its zero point; wrapping. */
#define TW_VEC_LUT 0x11u /* Byte of the descriptor's table, sign-extended; the index is the low eight bits of `a`, unsigned. */
#define TW_TRAP_OPCODE 0x1u /* unknown opcode */
#define TW_TRAP_FIELD 0x2u /* illegal field value */
#define TW_TRAP_SCRATCHPAD 0x3u /* index outside a memory */
#define TW_TRAP_LIMIT 0x4u /* address outside the base's limit */
#define TW_TRAP_TOKEN 0x5u /* token counter overflow */
#define TW_TRAP_COLLISION 0x6u /* two accesses to one port of a bank in a cycle */
#define TW_TRAP_BUS 0x7u /* bus error */
#define TW_TRAP_DEADLOCK 0x8u /* deadlock */
#define TW_STATE_EMPTY 0x0u /* has no instruction */
#define TW_STATE_TOKENLOAD 0x1u /* waits for a token of load */
#define TW_STATE_TOKENGEMM 0x2u /* waits for a token of gemm */
#define TW_STATE_TOKENVECTOR 0x3u /* waits for a token of vector */
#define TW_STATE_TOKENSTORE 0x4u /* waits for a token of store */
#define TW_STATE_SPACE 0x5u /* waits for space in a buffer or queue, or for an outstanding slot */
#define TW_STATE_REQUEST 0x6u /* waits for the bus */
#define TW_STATE_DATA 0x7u /* waits for data or acknowledgement */
#define TW_STATE_BUSY 0x8u /* is working */
#define TW_DESC_SCALAR_OFFSET 0x0u /* 32 bits: second operand of a simple operation with b = scalar */
#define TW_DESC_LO_OFFSET 0x4u /* 32 bits: lower bound of the result; clip, requant, mul, qadd */
#define TW_DESC_HI_OFFSET 0x8u /* 32 bits: upper bound of the result; clip, requant, mul, qadd */
#define TW_DESC_ZERO_POINT_OFFSET 0xcu /* 32 bits: added to the result of a deep operation before the clamp */
#define TW_DESC_MULTIPLIER_A_OFFSET 0x10u /* 32 bits: qadd: scale of the first operand */
#define TW_DESC_MULTIPLIER_B_OFFSET 0x14u /* 32 bits: qadd: scale of the second operand */
#define TW_DESC_MULTIPLIER_OFFSET 0x18u /* 32 bits: qadd: scale of the sum; mul: scale of the product */
#define TW_DESC_SHIFT_A_OFFSET 0x1cu /* 8 bits: qadd: shift of the first operand */
#define TW_DESC_SHIFT_B_OFFSET 0x1du /* 8 bits: qadd: shift of the second operand */
#define TW_DESC_SHIFT_OFFSET 0x1eu /* 8 bits: qadd: shift of the sum; mul: shift of the product */
#define TW_DESC_LEFT_SHIFT_OFFSET 0x1fu /* 8 bits: qadd: initial left shift of both operands, low five bits */
#define TW_DESC_ZERO_A_OFFSET 0x20u /* 8 bits: qadd, mul, mac: zero point of the first operand */
#define TW_DESC_ZERO_B_OFFSET 0x21u /* 8 bits: qadd, mul, mac: zero point of the second operand */
#define TW_DESC_RESERVED_OFFSET 0x22u /* 16 bits: zero */

#endif
