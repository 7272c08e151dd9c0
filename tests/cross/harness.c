/* Reads the inputs of each model from the first file and writes its outputs to the second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int run_function(const void *const *inputs, void *const *outputs, void *workspace);

struct model {
    const char *name;
    run_function *run;
    size_t inputs, outputs, workspace;
    const size_t *bytes;
};

enum { GUARD = 64, FILL = 0xa5, MOST = 64 };

/* Memory on a boundary of 64 that ends where it is told: what is written behind it is seen. */
static unsigned char *memory(size_t bytes)
{
    unsigned char *all = aligned_alloc(64, (bytes + GUARD + 63) / 64 * 64);
    if (all == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    memset(all, FILL, bytes + GUARD);
    return all;
}

static void check(const char *name, const unsigned char *all, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++) {
        if (all[bytes + i] != FILL) {
            fprintf(stderr, "%s: byte %zu behind the end was written\n", name, i);
            exit(1);
        }
    }
}

static void run(const struct model *m, FILE *in, FILE *out)
{
    unsigned char *values[MOST];
    if (m->inputs + m->outputs > MOST) {
        fprintf(stderr, "%s: too many inputs and outputs\n", m->name);
        exit(2);
    }
    for (size_t i = 0; i < m->inputs + m->outputs; i++) {
        values[i] = memory(m->bytes[i]);
        if (i < m->inputs && fread(values[i], 1, m->bytes[i], in) != m->bytes[i]) {
            fprintf(stderr, "%s: the inputs are too short\n", m->name);
            exit(2);
        }
    }
    unsigned char *workspace = memory(m->workspace);
    /* Twice: nothing of the first run may be left. */
    for (int round = 0; round < 2; round++) {
        int status = m->run((const void *const *)values, (void *const *)(values + m->inputs), workspace);
        if (status != 0) {
            fprintf(stderr, "%s: gives %d\n", m->name, status);
            exit(1);
        }
    }
    check(m->name, workspace, m->workspace);
    free(workspace);
    for (size_t i = 0; i < m->inputs + m->outputs; i++) {
        check(m->name, values[i], m->bytes[i]);
        if (i >= m->inputs && fwrite(values[i], 1, m->bytes[i], out) != m->bytes[i]) {
            fprintf(stderr, "%s: the outputs cannot be written\n", m->name);
            exit(2);
        }
        free(values[i]);
    }
}

static int run_all(const struct model *models, size_t count, char **arguments)
{
    FILE *in = fopen(arguments[1], "rb"), *out = fopen(arguments[2], "wb");
    if (in == NULL || out == NULL) {
        fprintf(stderr, "the files cannot be opened\n");
        return 2;
    }
    for (size_t i = 0; i < count; i++) {
        run(&models[i], in, out);
    }
    return fclose(out) == 0 ? 0 : 2;
}
