/* See tw_accelerator.h. */
#include "tw_accelerator.h"

#include "tilewright_hw.h"

/* Looks at the status register until a reset is complete; bursts on the bus end first. */
#define RESET_LOOKS 1000000u

/* Bytes that are converted before they are copied, on the stack. */
#define CHUNK 128u

/* What the processor wrote to memory before is there before what it writes after. */
static void barrier(void)
{
#if defined(__GNUC__)
    __sync_synchronize();
#endif
}

static uint32_t read_mapped_register(void *context, uint32_t address)
{
    return ((tw_accelerator *)context)->mapped_registers[address / 4];
}

static void write_mapped_register(void *context, uint32_t address, uint32_t value)
{
    barrier();
    ((tw_accelerator *)context)->mapped_registers[address / 4] = value;
    barrier();
}

static void write_mapped_memory(void *context, uint64_t at, const void *bytes, size_t count)
{
    volatile unsigned char *to = ((tw_accelerator *)context)->mapped_memory + at;
    for (size_t i = 0; i < count; i++) {
        to[i] = ((const unsigned char *)bytes)[i];
    }
}

static void read_mapped_memory(void *context, uint64_t at, void *bytes, size_t count)
{
    const volatile unsigned char *from = ((tw_accelerator *)context)->mapped_memory + at;
    for (size_t i = 0; i < count; i++) {
        ((unsigned char *)bytes)[i] = from[i];
    }
}

void tw_accelerator_map(tw_accelerator *accelerator, volatile void *registers, volatile void *memory,
                        uint64_t bus_address, uint64_t memory_bytes)
{
    accelerator->context = accelerator;
    accelerator->read_register = read_mapped_register;
    accelerator->write_register = write_mapped_register;
    accelerator->write_memory = write_mapped_memory;
    accelerator->read_memory = read_mapped_memory;
    accelerator->wait = 0;
    accelerator->bus_address = bus_address;
    accelerator->memory_bytes = memory_bytes;
    accelerator->cycle_limit = 0;
    accelerator->cycles = 0;
    accelerator->trap_cause = accelerator->trap_unit = accelerator->trap_ordinal = 0;
    accelerator->model = 0;
    accelerator->bases = 0;
    accelerator->mapped_registers = registers;
    accelerator->mapped_memory = memory;
}

static uint32_t read_register(tw_accelerator *accelerator, uint32_t address)
{
    return accelerator->read_register(accelerator->context, address);
}

static void write_register(tw_accelerator *accelerator, uint32_t address, uint32_t value)
{
    accelerator->write_register(accelerator->context, address, value);
}

/* Two adjacent registers, low half first. */
static uint64_t read_wide(tw_accelerator *accelerator, uint32_t address)
{
    uint64_t low = read_register(accelerator, address);
    return low | (uint64_t)read_register(accelerator, address + 4) << 32;
}

static void write_wide(tw_accelerator *accelerator, uint32_t address, uint64_t value)
{
    write_register(accelerator, address, (uint32_t)value);
    write_register(accelerator, address + 4, (uint32_t)(value >> 32));
}

/* Aborts what the accelerator does, which leaves its base registers and memory as they are. */
static int reset(tw_accelerator *accelerator)
{
    write_register(accelerator, TW_REG_CONTROL, TW_CONTROL_RESET);
    for (uint32_t look = 0; look < RESET_LOOKS; look++) {
        if ((read_register(accelerator, TW_REG_STATUS) & TW_STATUS_BUSY) == 0) {
            write_register(accelerator, TW_REG_CONTROL, TW_CONTROL_IRQ_ENABLE);
            return TW_ACCELERATOR_DONE;
        }
    }
    return TW_ACCELERATOR_STUCK;
}

int tw_accelerator_open(tw_accelerator *accelerator, uint64_t config_hash, uint32_t bases, uint64_t memory_bytes)
{
    accelerator->model = 0;
    accelerator->bases = bases;
    if (read_register(accelerator, TW_REG_ID) != TW_ID_VALUE) {
        return TW_ACCELERATOR_ABSENT;
    }
    if (read_register(accelerator, TW_REG_ISA_VERSION) != TW_ISA_VERSION_VALUE ||
        read_wide(accelerator, TW_REG_CONFIG_HASH_LO) != config_hash) {
        return TW_ACCELERATOR_OTHER;
    }
    if (accelerator->memory_bytes < memory_bytes || accelerator->bus_address % 64 != 0) {
        return TW_ACCELERATOR_MEMORY;
    }
    return reset(accelerator);
}

int tw_accelerator_run(tw_accelerator *accelerator, const tw_accelerator_program *program)
{
    for (uint32_t i = 0; i < accelerator->bases; i++) {
        /* Registers past the program's regions hold an empty region, which no access fits. */
        int used = i < program->regions;
        write_wide(accelerator, TW_REG_BASE + 16 * i, used ? accelerator->bus_address + program->region[i].at : 0);
        write_wide(accelerator, TW_REG_BASE + 16 * i + 8, used ? program->region[i].limit : 0);
    }
    write_wide(accelerator, TW_REG_STREAM_ADDR_LO, accelerator->bus_address + program->stream);
    write_register(accelerator, TW_REG_STREAM_INSNS, program->insns);
    write_register(accelerator, TW_REG_IRQ_CLEAR, 1);
    write_register(accelerator, TW_REG_DOORBELL, 1);
    uint32_t status;
    while (((status = read_register(accelerator, TW_REG_STATUS)) & TW_STATUS_BUSY) != 0) {
        int late = accelerator->cycle_limit != 0 && (status & TW_STATUS_TRAPPED) == 0 &&
                   read_wide(accelerator, TW_REG_CYCLES_LO) > accelerator->cycle_limit;
        if (late || (accelerator->wait != 0 && accelerator->wait(accelerator->context) != 0)) {
            int stuck = reset(accelerator);
            return stuck != TW_ACCELERATOR_DONE ? stuck : TW_ACCELERATOR_STOPPED;
        }
    }
    accelerator->cycles = read_wide(accelerator, TW_REG_CYCLES_LO);
    if ((status & TW_STATUS_TRAPPED) != 0) {
        accelerator->trap_cause = read_register(accelerator, TW_REG_TRAP_CAUSE);
        accelerator->trap_unit = read_register(accelerator, TW_REG_TRAP_UNIT);
        accelerator->trap_ordinal = read_register(accelerator, TW_REG_TRAP_ORDINAL);
        int stuck = reset(accelerator);
        return stuck != TW_ACCELERATOR_DONE ? stuck : TW_ACCELERATOR_TRAPPED;
    }
    /* The program may have ended between two looks, but late. */
    return accelerator->cycle_limit != 0 && accelerator->cycles > accelerator->cycle_limit ? TW_ACCELERATOR_STOPPED
                                                                                           : TW_ACCELERATOR_DONE;
}

/* The element of the dense tensor at a place, or the tensor's size for padding. */
static size_t element(const tw_accelerator_tensor *tensor, const uint32_t place[5])
{
    uint32_t batch = place[0], channel = place[1] * tensor->block + place[4], row = place[2];
    uint32_t column = place[3] - tensor->pad_before; /* wraps in the padding before */
    if (column >= tensor->columns || channel >= tensor->channels) {
        return tensor->bytes;
    }
    return tensor->layout == TW_ACCELERATOR_NHWC
               ? (((size_t)batch * tensor->rows + row) * tensor->columns + column) * tensor->channels + channel
               : (((size_t)batch * tensor->channels + channel) * tensor->rows + row) * tensor->columns + column;
}

/* Goes through a tensor in the order of the accelerator's memory: batch, block, row, column, channel of the block. Bytes
 * go from `from` to the memory, or, if that is 0, from the memory to `to`. */
static void convert(tw_accelerator *accelerator, const tw_accelerator_tensor *tensor, const unsigned char *from,
                    unsigned char *to)
{
    const uint32_t sizes[5] = {
        tensor->batch, (tensor->channels + tensor->block - 1) / tensor->block, tensor->rows,
        tensor->pad_before + tensor->columns + tensor->pad_after, tensor->block,
    };
    uint32_t place[5] = {0, 0, 0, 0, 0};
    uint64_t count = 1, at = 0;
    for (int i = 0; i < 5; i++) {
        count *= sizes[i];
    }
    while (at < count) {
        unsigned char chunk[CHUNK];
        size_t bytes = count - at < CHUNK ? (size_t)(count - at) : CHUNK;
        if (from == 0) {
            accelerator->read_memory(accelerator->context, tensor->at + at, chunk, bytes);
        }
        for (size_t i = 0; i < bytes; i++) {
            size_t index = element(tensor, place);
            if (from != 0) {
                chunk[i] = index < tensor->bytes ? from[index] : tensor->fill;
            } else if (index < tensor->bytes) {
                to[index] = chunk[i];
            }
            for (int axis = 4; axis >= 0 && ++place[axis] == sizes[axis]; axis--) {
                place[axis] = 0;
            }
        }
        if (from != 0) {
            accelerator->write_memory(accelerator->context, tensor->at + at, chunk, bytes);
        }
        at += bytes;
    }
}

void tw_accelerator_write(tw_accelerator *accelerator, const tw_accelerator_tensor *tensor, const void *dense)
{
    if (tensor->layout == TW_ACCELERATOR_DENSE) {
        accelerator->write_memory(accelerator->context, tensor->at, dense, tensor->bytes);
    } else {
        convert(accelerator, tensor, dense, 0);
    }
}

void tw_accelerator_read(tw_accelerator *accelerator, const tw_accelerator_tensor *tensor, void *dense)
{
    if (tensor->layout == TW_ACCELERATOR_DENSE) {
        accelerator->read_memory(accelerator->context, tensor->at, dense, tensor->bytes);
    } else {
        convert(accelerator, tensor, 0, dense);
    }
}
