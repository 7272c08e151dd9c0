/*
 * Runs programs on a Tilewright accelerator through its registers and its memory, without an operating system, a heap
 * or a clock. Compile tw_accelerator.c once into a program, however many models it has.
 */
#ifndef TW_ACCELERATOR_H
#define TW_ACCELERATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. A model's function returns these, or what its CPU code returns, which is 0 or more. */
enum {
    TW_ACCELERATOR_DONE = 0,
    TW_ACCELERATOR_ABSENT = -1,  /* the registers are not those of an accelerator */
    TW_ACCELERATOR_OTHER = -2,   /* an accelerator with another configuration, or another version of its instructions */
    TW_ACCELERATOR_MEMORY = -3,  /* its memory is too small, or at an address that is no multiple of 64 */
    TW_ACCELERATOR_STUCK = -4,   /* it does not complete a reset */
    TW_ACCELERATOR_TRAPPED = -5, /* a program trapped: trap_cause, trap_unit and trap_ordinal say why and where */
    TW_ACCELERATOR_STOPPED = -6, /* a program passed cycle_limit, or wait returned something other than 0 */
    TW_ACCELERATOR_CLOSED = -7   /* the model was not opened on this accelerator, or another one was after it */
};

/* An accelerator: how to reach it, and the outcome of its last program. Fill in the first part, or call
 * tw_accelerator_map if registers and memory are in the processor's address space. */
typedef struct tw_accelerator {
    /* Passed to the functions below. */
    void *context;
    /* Reads and writes the register at a byte address. */
    uint32_t (*read_register)(void *context, uint32_t address);
    void (*write_register)(void *context, uint32_t address, uint32_t value);
    /* Copies bytes to and from the accelerator's memory; `at` counts from the memory's first byte. Where the
     * processor's caches are not coherent with the accelerator, these clean or invalidate them. */
    void (*write_memory)(void *context, uint64_t at, const void *bytes, size_t count);
    void (*read_memory)(void *context, uint64_t at, void *bytes, size_t count);
    /* Called again and again while a program runs: can sleep until the interrupt, or look at a clock. What it returns,
     * if not 0, stops the program. Can be 0. */
    int (*wait)(void *context);
    /* The memory's first byte as the accelerator's bus sees it, a multiple of 64, and the memory's size. Two models can
     * be in one accelerator's memory at the same time, each with a structure and a part of the memory of its own. */
    uint64_t bus_address;
    uint64_t memory_bytes;
    /* Cycles after which a program is stopped; 0 for no limit. */
    uint64_t cycle_limit;

    /* Cycles of the last program. */
    uint64_t cycles;
    /* The last trap, as TW_TRAP_... and TW_UNIT_... of tilewright_hw.h (unit 4 fetches instructions), and the number of
     * the instruction in its unit. */
    uint32_t trap_cause;
    uint32_t trap_unit;
    uint32_t trap_ordinal;
    /* The driver's own: what is in the memory, the number of base registers, and what tw_accelerator_map was given. */
    const void *model;
    uint32_t bases;
    volatile uint32_t *mapped_registers;
    volatile unsigned char *mapped_memory;
} tw_accelerator;

/* A piece of memory that a base register stands for. */
typedef struct tw_accelerator_region {
    uint64_t at;
    uint64_t limit;
} tw_accelerator_region;

/* A program in the accelerator's memory. */
typedef struct tw_accelerator_program {
    uint64_t stream;
    uint32_t insns;
    uint32_t regions;
    const tw_accelerator_region *region;
} tw_accelerator_program;

/* How a tensor is laid out in the program's memory. */
enum {
    TW_ACCELERATOR_DENSE = 0, /* byte for byte */
    TW_ACCELERATOR_NHWC = 1,  /* on the processor as batch, row, column, channel */
    TW_ACCELERATOR_NCHW = 2   /* on the processor as batch, channel, row, column */
};

/* A tensor in the accelerator's memory. If it is not dense, channels are in blocks there, and columns can be padded. */
typedef struct tw_accelerator_tensor {
    uint64_t at;
    uint32_t bytes; /* on the processor */
    uint32_t layout;
    uint32_t batch, channels, rows, columns;
    uint32_t block;                 /* channels of a block */
    uint32_t pad_before, pad_after; /* padding columns */
    uint8_t fill;                   /* value of padding channels and columns */
} tw_accelerator_tensor;

/* Fills in the functions, for registers and memory in the processor's address space and without caches between them and
 * the accelerator. */
void tw_accelerator_map(tw_accelerator *accelerator, volatile void *registers, volatile void *memory,
                        uint64_t bus_address, uint64_t memory_bytes);

/* Checks that the accelerator has a configuration and enough memory, and resets it. */
int tw_accelerator_open(tw_accelerator *accelerator, uint64_t config_hash, uint32_t bases, uint64_t memory_bytes);

/* Runs a program to its end. */
int tw_accelerator_run(tw_accelerator *accelerator, const tw_accelerator_program *program);

/* Copies a tensor to and from the accelerator's memory and converts its layout. */
void tw_accelerator_write(tw_accelerator *accelerator, const tw_accelerator_tensor *tensor, const void *dense);
void tw_accelerator_read(tw_accelerator *accelerator, const tw_accelerator_tensor *tensor, void *dense);

#ifdef __cplusplus
}
#endif

#endif
