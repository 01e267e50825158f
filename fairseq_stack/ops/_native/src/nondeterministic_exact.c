/* The nondeterministic stack for every finite input: what the kernels of the instruction sets decline, and that is slow. */
#include "kernels.h"

#include "scaled.h"
#include "nondeterministic_exact_sequence.h"
#include "nondeterministic_exact_forward.h"
#include "nondeterministic_exact_backward.h"

#define MEMORY_IS_SHORT 2

static double get(const struct nd_call *call, const void *array, size_t i) {
    return call->is_double ? ((const double *)array)[i] : ((const float *)array)[i];
}

static void put(const struct nd_call *call, void *array, size_t i, double x) {
    if (call->is_double) ((double *)array)[i] = x;
    else ((float *)array)[i] = (float)x;
}

static struct sequence sequence_of(const struct nd_call *call) {
    const int Q = call->num_states, S = call->num_symbols;
    return (struct sequence){.n = call->length, .Q = Q, .S = S, .C = Q * S};
}

/* Where the workspace has the log weights of step t for the backward pass. */
static double *kept_logits(const struct sequence *s, const struct nd_call *call, int64_t sequence, int t) {
    const size_t size = (size_t)s->C * (2 * s->C + s->Q);
    return (double *)((char *)call->workspace + sequence * call->workspace_bytes) + (t - 1) * size;
}

/* The log weights of step t in s->logits, and in the workspace. */
static void take_logits(const struct sequence *s, const struct nd_call *call, int64_t sequence, int t) {
    const size_t C = s->C, Q = s->Q, width = 2 * C + Q;
    for (size_t x = 0, row = (sequence * s->n + t - 1) * C; x < C; x++, row++) {
        for (size_t y = 0; y < C; y++) {
            s->logits[x * width + y] = get(call, call->push, row * C + y);
            s->logits[x * width + C + y] = get(call, call->replace, row * C + y);
        }
        for (size_t r = 0; r < Q; r++) s->logits[x * width + 2 * C + r] = get(call, call->pop, row * Q + r);
    }
    memcpy(kept_logits(s, call, sequence, t), s->logits, C * width * sizeof(double));
}

int nd_forward_exact(const void *given, int64_t sequence, char *scratch) {
    const struct nd_call *call = given;
    struct sequence s = sequence_of(call);
    const size_t size = (size_t)s.C * (s.n + 1);
    int undefined = 0;
    (void)scratch;
    call->inexact[sequence] = begin(&s, 0) ? 1 : MEMORY_IS_SHORT;
    if (!s.memory) return 1;
    start(&s);
    for (int t = 1; t <= s.n; t++) {
        take_logits(&s, call, sequence, t);
        undefined |= exponentiate(&s, t);
        fill(&s, t);
        read(&s, t);
        for (size_t i = 0; i < size; i++)
            put(call, call->weights, (sequence * s.n + t - 1) * size + i, undefined ? NAN : s.weights[i]);
    }
    free(s.memory);
    return 1;
}

int nd_backward_exact(const void *given, int64_t sequence, char *scratch) {
    const struct nd_call *call = given;
    struct sequence s = sequence_of(call);
    const size_t C = s.C, Q = s.Q, width = 2 * C + Q, size = C * (s.n + 1);
    (void)scratch;
    if (!begin(&s, 1)) {
        call->inexact[sequence] = MEMORY_IS_SHORT;
        return 1;
    }
    start(&s);
    for (int t = 1; t <= s.n; t++) {
        memcpy(s.logits, kept_logits(&s, call, sequence, t), C * width * sizeof(double));
        exponentiate(&s, t);
        fill(&s, t);
        read(&s, t);
    }
    for (int t = s.n; t > 0; t--) {
        const struct scaled total = read(&s, t);
        for (size_t i = 0; i < size; i++)
            s.cotangents[i] = get(call, call->cotangents, (sequence * s.n + t - 1) * size + i);
        read_back(&s, t, total);
        fill_back(&s, t);
        for (size_t x = 0, row = (sequence * s.n + t - 1) * C; x < C; x++, row++) {
            for (size_t y = 0; y < C; y++) {
                put(call, call->push_gradients, row * C + y, s.logits[x * width + y]);
                put(call, call->replace_gradients, row * C + y, s.logits[x * width + C + y]);
            }
            for (size_t r = 0; r < Q; r++)
                put(call, call->pop_gradients, row * Q + r, s.logits[x * width + 2 * C + r]);
        }
    }
    free(s.memory);
    return 1;
}
