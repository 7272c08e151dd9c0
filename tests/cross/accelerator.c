/* Opens and runs a model as standard input says. The accelerator is reached through standard input and output: each
 * access is a request that the test answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void give(const void *bytes, size_t count)
{
    if (fwrite(bytes, 1, count, stdout) != count) {
        exit(3);
    }
}

static void take(void *bytes, size_t count)
{
    if (fflush(stdout) != 0 || fread(bytes, 1, count, stdin) != count) {
        exit(4);
    }
}

static void request(char kind, uint64_t at, uint32_t count)
{
    give(&kind, 1);
    give(&at, 8);
    give(&count, 4);
}

static uint32_t read_register(void *context, uint32_t address)
{
    uint32_t value;
    (void)context;
    request('r', address, 0);
    take(&value, 4);
    return value;
}

static void write_register(void *context, uint32_t address, uint32_t value)
{
    (void)context;
    request('w', address, value);
}

static void write_memory(void *context, uint64_t at, const void *bytes, size_t count)
{
    (void)context;
    request('W', at, (uint32_t)count);
    give(bytes, count);
}

static void read_memory(void *context, uint64_t at, void *bytes, size_t count)
{
    (void)context;
    request('R', at, (uint32_t)count);
    take(bytes, count);
}

static void done(int32_t status)
{
    char kind = 'D';
    give(&kind, 1);
    give(&status, 4);
}

int main(void)
{
    static uint64_t workspace[(WORKSPACE + 7) / 8];
    static const size_t sizes[] = {SIZES};
    static tw_accelerator accelerator;
    void *values[INPUTS + OUTPUTS];
    accelerator.read_register = read_register;
    accelerator.write_register = write_register;
    accelerator.write_memory = write_memory;
    accelerator.read_memory = read_memory;
    for (size_t i = 0; i < INPUTS + OUTPUTS; i++) {
        values[i] = calloc(sizes[i] + 1, 1);
    }
    int command;
    while (fflush(stdout) == 0 && (command = getchar()) != EOF) {
        if (command == 'O') {
            take(&accelerator.bus_address, 8);
            take(&accelerator.memory_bytes, 8);
            take(&accelerator.cycle_limit, 8);
            done(MODEL_OPEN(&accelerator));
        } else {
            for (size_t i = 0; i < INPUTS; i++) {
                take(values[i], sizes[i]);
            }
            memset(workspace, 0xa5, sizeof workspace);
            done(MODEL_RUN(&accelerator, (const void *const *)values, values + INPUTS, workspace));
            give(&accelerator.trap_cause, 4);
            for (size_t i = INPUTS; i < INPUTS + OUTPUTS; i++) {
                give(values[i], sizes[i]);
            }
        }
    }
    return 0;
}
