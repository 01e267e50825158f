/* The stacks on CPUs: what Python calls, and the choice of the instruction set.
 *
 * Every kernel is compiled for each real type and each instruction set that the compiler can produce code for; which
 * one runs is decided on the machine. A call works through the sequences of a batch with threads of its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 16")

/* Keeps the compiler from loading a number again for each use. */
#if defined(__x86_64__)
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define IN_REGISTER(x) (void)(x)
#endif

/* One call of the nondeterministic stack; arrays are contiguous, and of one real type. */
struct nd_call {
    int64_t sequences, length, num_states, num_symbols;
    const uint8_t *careful;  /* for each sequence: whether some configurations may be out of reach */
    const void *transitions; /* (sequences, length, C, 2 C + Q), up to a factor for each step */
    void *weights;           /* W, (sequences, length, C, length + 1) */
    const void *cotangents;  /* of W */
    void *gradients;         /* of the logarithms of the transitions */
    void *workspace;         /* parts of workspace_bytes each */
    const int64_t *places;   /* which of them each sequence has */
    int64_t workspace_bytes;
    uint8_t *inexact;        /* for each sequence: set if some inner weights may have lost digits */
};

/* Step t of the nondeterministic stack for a batch of beams, in double; columns as in nondeterministic_step.h. */
struct nd_step_call {
    int64_t step, num_states, num_symbols, value_size;
    const int32_t *ancestors;   /* (beams, t): each beam's place among the columns 0..t-1 */
    const void *const *columns; /* those of the steps 0..t-1 */
    const void *transitions;    /* (beams, C, 2 C + Q), up to a factor */
    const void *values;         /* v_t, (beams, value_size) */
    void *column;               /* the new columns, one for each beam */
    void *readings;             /* (beams, C, value_size) */
};

/* One call of the superposition stack; arrays likewise. */
struct sup_call {
    int64_t sequences, length, size;
    const void *actions, *values; /* (sequences, length, 3): push, no-op, pop; and (sequences, length, size) */
    void *readings;
    const void *cotangents; /* of the readings */
    void *action_gradients, *value_gradients;
};

#if defined(__x86_64__)
#include <immintrin.h>
/* Numbers below the normal ones are taken for 0: they are slow, and beside the others they do not matter. */
static unsigned int flush_denormals(void) {
    unsigned int before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
}
static void restore_denormals(unsigned int before) { _mm_setcsr(before); }
#else
static unsigned int flush_denormals(void) { return 0; }
static void restore_denormals(unsigned int before) { (void)before; }
#endif

typedef void kernel(const void *call, int64_t sequence, char *scratch);

/* The kernels for one instruction set, by real type: 0 for float, 1 for double. */
struct instruction_set {
    const char *name;
    int vector_bytes;
    kernel *(*nd_forward[2])(int Q, int S), *(*nd_backward[2])(int Q, int S), *(*nd_step)(int Q, int S);
    void (*nd_step_sizes)(int t, int Q, int S, int value_size, size_t *column, size_t *scratch);
    void (*nd_sizes[2])(int n, int Q, int S, size_t *workspace, size_t *forward, size_t *backward);
    kernel *sup_forward[2], *sup_backward[2];
    void (*sup_sizes[2])(int n, int m, size_t *forward, size_t *backward);
};

#define INSTRUCTION_SET(name, suffix)                                \
    {                                                                \
        name,                                                        \
        sizeof(vector_float_##suffix),                               \
        {nd_forward_float_##suffix, nd_forward_double_##suffix},     \
        {nd_backward_float_##suffix, nd_backward_double_##suffix},   \
        nd_step_double_##suffix,                                     \
        nd_step_sizes_double_##suffix,                               \
        {nd_sizes_float_##suffix, nd_sizes_double_##suffix},         \
        {sup_forward_float_##suffix, sup_forward_double_##suffix},   \
        {sup_backward_float_##suffix, sup_backward_double_##suffix}, \
        {sup_sizes_float_##suffix, sup_sizes_double_##suffix},       \
    }

#define VECTOR_BYTES 16
#define SUFFIX baseline
#include "both_types.h"
#undef VECTOR_BYTES
#undef SUFFIX

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define VECTOR_BYTES 32
#define SUFFIX avx2
#include "both_types.h"
#undef VECTOR_BYTES
#undef SUFFIX
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#endif
#define VECTOR_BYTES 64
#define SUFFIX avx512
#include "both_types.h"
#undef VECTOR_BYTES
#undef SUFFIX
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

static const struct instruction_set INSTRUCTION_SETS[] = {
#if defined(__x86_64__)
    INSTRUCTION_SET("avx512", avx512),
    INSTRUCTION_SET("avx2", avx2),
#endif
    INSTRUCTION_SET("baseline", baseline),
};
enum { NUM_INSTRUCTION_SETS = sizeof INSTRUCTION_SETS / sizeof *INSTRUCTION_SETS };

static int is_supported(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(name, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("fma");
    if (!strcmp(name, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    (void)name;
    return 1;
}

/* The name of instruction set number i, from the fastest on; NULL after the last. */
const char *fss_instruction_set(int i) { return i < NUM_INSTRUCTION_SETS ? INSTRUCTION_SETS[i].name : NULL; }

/* Whether this machine has instruction set number i. */
int fss_is_supported(int i) { return is_supported(INSTRUCTION_SETS[i].name); }

/* Bytes of one of its vectors. */
int fss_vector_bytes(int i) { return INSTRUCTION_SETS[i].vector_bytes; }

/* ---------------------------------------------------------------- threads */

struct job {
    kernel *kernel;
    const void *call;
    int64_t sequences;
    char *scratch;
    size_t scratch_bytes;
    atomic_llong next_sequence, next_worker;
};

static void *work(void *argument) {
    struct job *job = argument;
    char *scratch = job->scratch + atomic_fetch_add(&job->next_worker, 1) * job->scratch_bytes;
    unsigned int before = flush_denormals();
    int64_t sequence;
    while ((sequence = atomic_fetch_add(&job->next_sequence, 1)) < job->sequences)
        job->kernel(job->call, sequence, scratch);
    restore_denormals(before);
    return NULL;
}

/* Runs a kernel for all sequences. A thread that cannot be started leaves its work to the others. */
static void run(kernel *kernel, const void *call, int64_t sequences, int threads, char *scratch, size_t scratch_bytes) {
    enum { MOST_THREADS = 256 };
    pthread_t started[MOST_THREADS];
    int count = 0;
    struct job job = {kernel, call, sequences, scratch, scratch_bytes, 0, 0};
    while (count + 1 < threads && count < MOST_THREADS && !pthread_create(&started[count], NULL, work, &job)) count++;
    work(&job);
    while (count > 0) pthread_join(started[--count], NULL);
}

/* ---------------------------------------------------------------- nondeterministic stack */

/* Bytes of the workspace of one sequence, and of the scratch memory of one thread, forward and backward. */
void fss_nd_sizes(int instruction_set, int is_double, int n, int Q, int S, size_t sizes[3]) {
    INSTRUCTION_SETS[instruction_set].nd_sizes[is_double](n, Q, S, &sizes[0], &sizes[1], &sizes[2]);
}

void fss_nd_forward(int instruction_set, int is_double, const struct nd_call *call, int threads, char *scratch,
                    size_t scratch_bytes) {
    const struct instruction_set *set = &INSTRUCTION_SETS[instruction_set];
    kernel *kernel = set->nd_forward[is_double](call->num_states, call->num_symbols);
    run(kernel, call, call->sequences, threads, scratch, scratch_bytes);
}

void fss_nd_backward(int instruction_set, int is_double, const struct nd_call *call, int threads, char *scratch,
                     size_t scratch_bytes) {
    const struct instruction_set *set = &INSTRUCTION_SETS[instruction_set];
    kernel *kernel = set->nd_backward[is_double](call->num_states, call->num_symbols);
    run(kernel, call, call->sequences, threads, scratch, scratch_bytes);
}

/* Bytes of the column of step t, for one beam, and of the scratch memory of one thread. */
void fss_nd_step_sizes(int instruction_set, int t, int Q, int S, int value_size, size_t sizes[2]) {
    INSTRUCTION_SETS[instruction_set].nd_step_sizes(t, Q, S, value_size, &sizes[0], &sizes[1]);
}

void fss_nd_step(int instruction_set, const struct nd_step_call *call, int beams, int threads, char *scratch,
                 size_t scratch_bytes) {
    run(INSTRUCTION_SETS[instruction_set].nd_step(call->num_states, call->num_symbols), call, beams, threads, scratch,
        scratch_bytes);
}

/* ---------------------------------------------------------------- superposition stack */

/* Bytes of the scratch memory of one thread, forward and backward. */
void fss_sup_sizes(int instruction_set, int is_double, int n, int m, size_t sizes[2]) {
    INSTRUCTION_SETS[instruction_set].sup_sizes[is_double](n, m, &sizes[0], &sizes[1]);
}

void fss_sup_forward(int instruction_set, int is_double, const struct sup_call *call, int threads, char *scratch,
                     size_t scratch_bytes) {
    kernel *kernel = INSTRUCTION_SETS[instruction_set].sup_forward[is_double];
    run(kernel, call, call->sequences, threads, scratch, scratch_bytes);
}

void fss_sup_backward(int instruction_set, int is_double, const struct sup_call *call, int threads, char *scratch,
                      size_t scratch_bytes) {
    kernel *kernel = INSTRUCTION_SETS[instruction_set].sup_backward[is_double];
    run(kernel, call, call->sequences, threads, scratch, scratch_bytes);
}

/* Changes whenever what Python calls here does. */
int fss_interface(void) { return 2; }
