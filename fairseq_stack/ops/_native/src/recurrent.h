/* An LSTM with stacks: both passes over some sequences that advance together (Section 7.1 of docs/algorithm.md). What
 * a pass computes of a sequence does not depend on the others.
 */

/* ---------------------------------------------------------------- forward */

/* c_t and h_t, in place of the gates before their activations. */
static __attribute__((noinline)) void rnn_cell(int H, real *gates, const real *kept, const real *before, real *cell,
                                               real *bounded, real *hidden) {
    for (int j = 0; j < H; j += LANES) {
        const int count = H - j;
        const vector input = sigmoid(load(gates + j, count)), forget = sigmoid(load(gates + H + j, count));
        const vector candidate = hyperbolic_tangent(load(gates + 2 * H + j, count));
        const vector output = sigmoid(load(gates + 3 * H + j, count));
        const vector update = kept ? candidate * load(kept + j, count) : candidate;
        const vector own = forget * load(before + j, count) + input * update, bound = hyperbolic_tangent(own);
        store(gates + j, input, count);
        store(gates + H + j, forget, count);
        store(gates + 2 * H + j, candidate, count);
        store(gates + 3 * H + j, output, count);
        store(cell + j, own, count);
        store(bounded + j, bound, count);
        store(hidden + j, output * bound, count);
    }
}

/* The gates of step t before their activations. */
INLINE void rnn_gates(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_block *block, size_t t) {
    struct rnn_product p = {.rows = shape->K, .columns = 4 * shape->H, .matrix = block->weights.recurrent};
    for (int i = 0; i < block->count; i++) {
        const struct rnn_sequence *s = &block->sequences[i];
        const size_t step = s->number * shape->n + t - 1;
        p.from[i] = see_numbers(call->is_double, call->gates, step * 4 * shape->H, 4 * shape->H, s->input);
        p.x[i] = s->remembered + (t - 1) * shape->K;
        p.to[i] = s->gates + (t - 1) * 4 * shape->H;
    }
    rnn_multiply(block->count, &p);
}

/* The projections of h_t. */
INLINE void rnn_project(const struct rnn_shape *shape, const struct rnn_block *block, size_t t) {
    struct rnn_product p = {.rows = shape->H, .columns = shape->P, .matrix = block->weights.driving};
    for (int i = 0; i < block->count; i++) {
        const struct rnn_sequence *s = &block->sequences[i];
        p.from[i] = block->weights.bias;
        p.x[i] = s->remembered + t * shape->K + shape->R;
        p.to[i] = s->driving + (t - 1) * shape->P;
    }
    rnn_multiply(block->count, &p);
}

/* Before the first step. */
static void rnn_begin(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_sequence *s) {
    memset(s->cells, 0, shape->H * sizeof(real));
    memset(s->remembered, 0, shape->K * sizeof(real));
    const real *reading = see_numbers(call->is_double, call->reading, 0, shape->R, s->remembered);
    if (reading) memmove(s->remembered, reading, shape->R * sizeof(real));
    size_t first = 0;
    for (int64_t i = 0; i < call->num_stacks; i++) {
        const size_t size = rnn_bottom_size(&call->stacks[i]);
        rnn_begin_stack(&s->stacks[i], see_numbers(call->is_double, call->bottoms, first, size, s->stacks[i].of_value));
        first += size;
    }
}

/* The stacks' step t; returns 0 if float is not precise enough. */
INLINE int rnn_step_stacks(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_sequence *s,
                           size_t t) {
    real *driving = s->driving + (t - 1) * shape->P, *reading = s->remembered + t * shape->K;
    const real *hidden = reading + shape->R;
    for (int64_t i = 0; i < call->num_stacks; i++) {
        if (!rnn_step_stack(&s->stacks[i], t, driving, hidden, reading)) return 0;
        driving += rnn_num_projected(&call->stacks[i]);
        reading += rnn_reading_size(&call->stacks[i]);
    }
    return 1;
}

/* The stacks' step t of all sequences; those for which the type is not precise enough are marked, and leave the block. */
INLINE void rnn_step_block(const struct rnn_call *call, const struct rnn_shape *shape, struct rnn_block *block, size_t t) {
    rnn_project(shape, block, t);
    for (int i = block->count - 1; i >= 0; i--) {
        if (rnn_step_stacks(call, shape, &block->sequences[i], t)) continue;
        (sizeof(real) == 4 ? call->wide : call->inexact)[block->sequences[i].number] = 1;
        block->sequences[i] = block->sequences[--block->count];
    }
}

/* Whether this kernel of float has left sequences of a block to the kernel of double. */
INLINE int rnn_has_wide(const struct rnn_call *call, int64_t number) {
    int wide = 0;
    for (int64_t i = number * call->together; i < (number + 1) * call->together && i < call->sequences; i++)
        wide |= call->wide[i];
    return wide && sizeof(real) == 4;
}

/* In float, leaves sequences for which that is not precise enough to the kernel of double, which leaves out those for
 * which it is not, either. */
static int rnn_forward(const void *given, int64_t number, char *memory) {
    const struct rnn_call *call = given;
    const struct rnn_shape shape = rnn_shape_of(call);
    struct rnn_block block = rnn_begin_block(call, number, 0, memory);
    const size_t H = shape.H, K = shape.K, n = shape.n;
    for (int i = 0; i < block.count; i++) rnn_begin(call, &shape, &block.sequences[i]);
    for (size_t t = 1; t <= n && block.count > 0; t++) {
        rnn_gates(call, &shape, &block, t);
        for (int i = 0; i < block.count; i++) {
            const struct rnn_sequence *s = &block.sequences[i];
            const real *kept = see_numbers(call->is_double, call->kept, (s->number * n + t - 1) * H, H, s->kept);
            rnn_cell(H, s->gates + (t - 1) * 4 * H, kept, s->cells + (t - 1) * H, s->cells + t * H,
                     s->bounded + (t - 1) * H, s->remembered + t * K + shape.R);
        }
        if (t < n && call->num_stacks > 0) rnn_step_block(call, &shape, &block, t);
    }
    for (int i = 0; i < block.count; i++) {
        const struct rnn_sequence *s = &block.sequences[i];
        put_numbers(call->is_double, call->remembered, s->number * n * K, n * K, s->remembered);
        for (size_t t = 1; t <= n; t++)
            put_numbers(call->is_double, call->outputs, (s->number * n + t - 1) * H, H, s->remembered + t * K + shape.R);
    }
    return !rnn_has_wide(call, number);
}

/* ---------------------------------------------------------------- backward */

/* The gradients of the gates before their activations, and of c_{t-1} in place of that of c_t. */
static __attribute__((noinline)) void rnn_cell_back(int H, const real *gates, const real *kept, const real *before,
                                                    const real *bounded, const real *of_hidden, real *of_cell,
                                                    real *of_gates) {
    for (int j = 0; j < H; j += LANES) {
        const int count = H - j;
        const vector input = load(gates + j, count), forget = load(gates + H + j, count);
        const vector candidate = load(gates + 2 * H + j, count), output = load(gates + 3 * H + j, count);
        const vector factor = kept ? load(kept + j, count) : splat(1), bound = load(bounded + j, count);
        const vector hidden = load(of_hidden + j, count);
        const vector cell = load(of_cell + j, count) + hidden * output * (1 - bound * bound);
        store(of_gates + j, cell * candidate * factor * input * (1 - input), count);
        store(of_gates + H + j, cell * load(before + j, count) * forget * (1 - forget), count);
        store(of_gates + 2 * H + j, cell * input * factor * (1 - candidate * candidate), count);
        store(of_gates + 3 * H + j, hidden * bound * output * (1 - output), count);
        store(of_cell + j, cell * forget, count);
    }
}

/* What the stacks add to the gradient of h_t, whose other part is in `of_hidden[0]`; all of it is in `of_hidden[1]`. */
INLINE void rnn_stacks_back(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_block *block,
                            size_t t) {
    struct rnn_product p = {.rows = shape->P, .columns = shape->H, .matrix = block->weights.driving};
    for (int i = 0; i < block->count; i++) {
        const struct rnn_sequence *s = &block->sequences[i];
        const real *driving = s->driving + (t - 1) * shape->P, *cotangent = s->of_remembered;
        real *gradient = s->projected;
        for (int64_t k = 0; k < call->num_stacks; k++) {
            rnn_step_stack_back(&s->stacks[k], t, driving, cotangent, gradient, s->of_hidden[0]);
            driving += rnn_num_projected(&call->stacks[k]);
            gradient += rnn_num_projected(&call->stacks[k]);
            cotangent += rnn_reading_size(&call->stacks[k]);
        }
        p.from[i] = s->of_hidden[0];
        p.x[i] = s->projected;
        p.to[i] = s->of_hidden[1];
    }
    rnn_multiply(block->count, &p);
}

/* The derivatives of step t, without the stacks. */
INLINE void rnn_step_back(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_block *block,
                          size_t t) {
    const size_t H = shape->H, n = shape->n;
    struct rnn_product p = {.rows = 4 * H, .columns = shape->K, .matrix = block->weights.recurrent};
    for (int i = 0; i < block->count; i++) {
        const struct rnn_sequence *s = &block->sequences[i];
        const size_t step = s->number * n + t - 1;
        rnn_cell_back(H, s->gates + (t - 1) * 4 * H, see_numbers(call->is_double, call->kept, step * H, H, s->kept),
                      s->cells + (t - 1) * H, s->bounded + (t - 1) * H, s->of_hidden[call->num_stacks > 0], s->of_cell,
                      s->of_gates);
        put_numbers(call->is_double, call->gate_gradients, step * 4 * H, 4 * H, s->of_gates);
        put_numbers(call->is_double, call->projection_gradients, step * shape->P, shape->P, s->projected);
        p.x[i] = s->of_gates;
        p.to[i] = s->of_remembered;
    }
    rnn_multiply(block->count, &p);
}

/* Before the last step. */
static void rnn_begin_back(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_sequence *s) {
    memset(s->of_cell, 0, shape->H * sizeof(real));
    memset(s->of_remembered, 0, shape->K * sizeof(real));
    memset(s->projected, 0, shape->P * sizeof(real));
    for (int64_t i = 0; i < call->num_stacks; i++) rnn_begin_stack_back(&s->stacks[i], shape->n);
}

/* The gradients of the first reading and of the vectors at the bottom. */
static void rnn_end_back(const struct rnn_call *call, const struct rnn_shape *shape, const struct rnn_sequence *s) {
    size_t all = 0, first = 0;
    put_numbers(call->is_double, call->reading_gradients, s->number * shape->R, shape->R, s->of_remembered);
    for (int64_t i = 0; i < call->num_stacks; i++) all += rnn_bottom_size(&call->stacks[i]);
    for (int64_t i = 0; i < call->num_stacks; i++) {
        const struct rnn_driven *d = &s->stacks[i];
        if (d->stack->kind != STACK_AUTOMATON) continue;
        rnn_nd_end_back(&d->nd, d->of_value);
        put_numbers(call->is_double, call->bottom_gradients, s->number * all + first, d->stack->value_size, d->of_value);
        first += d->stack->value_size;
    }
}

static int rnn_backward(const void *given, int64_t number, char *memory) {
    const struct rnn_call *call = given;
    const struct rnn_shape shape = rnn_shape_of(call);
    const struct rnn_block block = rnn_begin_block(call, number, 1, memory);
    const size_t H = shape.H, n = shape.n;
    for (int i = 0; i < block.count; i++) rnn_begin_back(call, &shape, &block.sequences[i]);
    for (size_t t = n; t > 0; t--) {
        for (int i = 0; i < block.count; i++) {
            const struct rnn_sequence *s = &block.sequences[i];
            const size_t step = s->number * n + t - 1;
            const real *cotangent = see_numbers(call->is_double, call->cotangents, step * H, H, s->of_hidden[0]);
            for (size_t j = 0; j < H; j++)
                s->of_hidden[0][j] = s->of_hidden[1][j] = cotangent[j] + s->of_remembered[shape.R + j];
        }
        if (t < n && call->num_stacks > 0) rnn_stacks_back(call, &shape, &block, t);
        rnn_step_back(call, &shape, &block, t);
    }
    for (int i = 0; i < block.count; i++) rnn_end_back(call, &shape, &block.sequences[i]);
    return !rnn_has_wide(call, number);
}

/* Bytes of the record of a sequence, and of the working memory of both passes. */
static void rnn_sizes(const struct rnn_call *call, size_t sizes[3]) {
    const struct rnn_sequence forward = rnn_lay_out(call, 0, NULL, NULL), backward = rnn_lay_out(call, 1, NULL, NULL);
    const size_t weights = rnn_get_weights(call, NULL).bytes;
    sizes[0] = forward.bytes;
    sizes[1] = weights + call->together * forward.scratch_bytes;
    sizes[2] = weights + call->together * backward.scratch_bytes;
}
