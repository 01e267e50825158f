/* An LSTM with stacks: the superposition stack that it drives, for one sequence.
 *
 * A column is what lies on the stack after a step: the vector that the next step pushes, and below it the elements from
 * the top down, as deep as they can still come up to the top before the last reading. So a step is one sum of three
 * shifted columns, in which depth and component are one axis.
 */

/* How many elements matter after step t of n, of which the last is not read. */
INLINE int64_t rnn_sup_height(const struct rnn_stack *stack, int64_t n, int64_t t) {
    const int64_t most = t < n - t ? t : n - t;
    return most < stack->limit ? most : stack->limit;
}

/* Room for the column after step t: the next vector, the elements, two elements of zeros, and the rest of a vector. */
INLINE size_t rnn_sup_size(const struct rnn_stack *stack, int64_t n, int64_t t) {
    return (rnn_sup_height(stack, n, t) + 3) * stack->value_size + LANES;
}

/* The columns after the steps 0..n - 1 of a sequence, and the gradient of one. */
struct rnn_sup {
    const struct rnn_stack *stack;
    int64_t n;
    real *columns;
    real *gradients[2]; /* of the last column and of the one before, each with an element of zeros above it */
    size_t bytes, scratch_bytes;
};

INLINE struct rnn_sup rnn_sup_lay_out(const struct rnn_stack *stack, int64_t n, char *record, char *scratch) {
    struct rnn_sup s = {.stack = stack, .n = n};
    size_t size = 0, used = 0, most = 0;
    for (int64_t t = 0; t < n; t++) {
        const size_t own = rnn_sup_size(stack, n, t);
        size += own;
        if (own > most) most = own;
    }
    char *memory = record;
    TAKE(s.columns, size)
    s.bytes = used;
    memory = scratch;
    used = 0;
    TAKE(s.gradients[0], most + 2 * LANES)
    TAKE(s.gradients[1], most + 2 * LANES)
    s.scratch_bytes = used;
    return s;
}

/* Makes the two elements below the last one 0, and the rest of a vector. */
INLINE void rnn_sup_end(const struct rnn_sup *s, real *column, int64_t height) {
    memset(column + (height + 1) * s->stack->value_size, 0, (2 * s->stack->value_size + LANES) * sizeof(real));
}

/* Step t from the column before it; returns the column after it, and copies the top to `reading`. */
INLINE real *rnn_sup_step(const struct rnn_sup *s, int64_t t, real *before, const real *actions, const real *value,
                          real *reading) {
    const int64_t m = s->stack->value_size, height = rnn_sup_height(s->stack, s->n, t);
    const vector push = splat(actions[0]), noop = splat(actions[1]), pop = splat(actions[2]);
    real *after = before + rnn_sup_size(s->stack, s->n, t - 1);
    memcpy(before, value, m * sizeof(real));
    for (int64_t i = 0; i < height * m; i += LANES) {
        const real *at = before + i;
        store(after + m + i, push * load(at, LANES) + noop * load(at + m, LANES) + pop * load(at + 2 * m, LANES), LANES);
    }
    rnn_sup_end(s, after, height);
    memcpy(reading, after + m, m * sizeof(real));
    return after;
}

/* The derivatives of step t: adds the cotangent of the reading to the gradient of the column after the step, in
 * `gradients[t % 2]`, and puts the gradient of the column before it into the other. Returns the column before. */
INLINE real *rnn_sup_step_back(const struct rnn_sup *s, int64_t t, real *after, const real *actions,
                               const real *cotangent, real *of_actions, real *of_value) {
    const int64_t m = s->stack->value_size, height = rnn_sup_height(s->stack, s->n, t),
                  height_before = rnn_sup_height(s->stack, s->n, t - 1);
    const vector push = splat(actions[0]), noop = splat(actions[1]), pop = splat(actions[2]);
    const real *before = after - rnn_sup_size(s->stack, s->n, t - 1);
    real *gradient = s->gradients[t % 2], *next = s->gradients[1 - t % 2];
    vector sums[3] = {{0}};
    for (int64_t x = 0; x < m; x++) gradient[m + x] += cotangent[x];
    for (int64_t i = 0; i < height * m; i += LANES) {
        const vector own = load(gradient + m + i, LANES);
        UNROLL for (int action = 0; action < 3; action++) sums[action] += own * load(before + i + action * m, LANES);
    }
    for (int action = 0; action < 3; action++) of_actions[action] = lane_sum(sums[action]);
    for (int64_t x = 0; x < m; x++) of_value[x] = actions[0] * gradient[m + x];
    for (int64_t i = 0; i < height_before * m; i += LANES) {
        const real *at = gradient + i; /* one element above */
        store(next + m + i, push * load(at + 2 * m, LANES) + noop * load(at + m, LANES) + pop * load(at, LANES), LANES);
    }
    rnn_sup_end(s, next, height_before);
    return (real *)before;
}

/* Before the first step of the backward pass. */
INLINE void rnn_sup_begin_back(const struct rnn_sup *s) {
    const size_t bytes = s->scratch_bytes / 2;
    memset(s->gradients[0], 0, bytes);
    memset(s->gradients[1], 0, bytes);
}
