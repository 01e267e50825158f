/* An LSTM with stacks: the nondeterministic stack that it drives, for one sequence. */

struct rnn_nd {
    const struct rnn_stack *stack;
    struct nd_steps steps;
    real *ones, *readings; /* a vector of ones; room for the readings of all configurations, */
    real *value;           /* and for the vector at the bottom, backward its gradient */
};

/* The column that step t of n makes; the first step after the original bottom makes column 0. */
INLINE int rnn_nd_column(const struct rnn_stack *stack, int64_t t) {
    return (int)(stack->has_original_bottom && t > 0 ? t - 1 : t);
}

/* Lays out the columns in the record, and in the scratch memory what the passes need. */
static struct rnn_nd rnn_nd_lay_out(const struct rnn_stack *stack, int64_t n, char *record, char *memory) {
    const int Q = (int)stack->num_states, S = (int)stack->num_symbols, size = (int)stack->value_size;
    const struct nd_steps sizes = {
        .length = rnn_nd_column(stack, n - 1), .window = stack->limit, .Q = Q, .S = S, .value_size = size};
    struct rnn_nd nd = {.stack = stack};
    size_t used = 0;
    TAKE(nd.ones, (size_t)size)
    TAKE(nd.readings, (size_t)Q * S * size)
    TAKE(nd.value, (size_t)size)
    nd.steps = nd_steps_lay_out(sizes, record, memory, used);
    for (int m = 0; memory && m < size; m++) nd.ones[m] = 1;
    return nd;
}

/* What is read of the readings of all configurations, (C, m). */
INLINE void rnn_nd_read(const struct rnn_nd *nd, real *reading) {
    const int64_t size = nd->stack->num_symbols * nd->stack->value_size;
    const int64_t states = nd->stack->num_states;
    memcpy(reading, nd->readings, size * sizeof(real));
    for (int64_t q = 1; q < states; q++)
        for (int64_t i = 0; i < size; i++)
            if (nd->stack->reads_states) reading[q * size + i] = nd->readings[q * size + i];
            else reading[i] += nd->readings[q * size + i];
}

/* The cotangents of the readings of all configurations. */
INLINE void rnn_nd_read_back(const struct rnn_nd *nd, const real *cotangent) {
    const int64_t size = nd->stack->num_symbols * nd->stack->value_size;
    for (int64_t q = 0; q < nd->stack->num_states; q++)
        memcpy(nd->readings + q * size, cotangent + (nd->stack->reads_states ? q * size : 0), size * sizeof(real));
}

/* After the first step with the original bottom: the reading is the distribution of its pushes. */
INLINE void rnn_nd_read_start(const struct rnn_nd *nd) {
    const struct nd_step_column *own = nd->steps.columns;
    const int64_t C = nd->stack->num_states * nd->stack->num_symbols, m = nd->stack->value_size;
    real total = 0;
    for (int64_t y = 0; y < C; y++) total += own->alpha[y];
    for (int64_t y = 0; y < C; y++)
        for (int64_t x = 0; x < m; x++)
            nd->readings[y * m + x] = own->alpha[y] / total * own->value[x] + own->marks[x] + *own->mark;
}

/* What the cotangents of that reading add to the gradients of the pushes and of the vector at the bottom. */
INLINE void rnn_nd_read_start_back(const struct rnn_nd *nd, real *of_pushes, real *of_bottom) {
    const struct nd_step_column *own = nd->steps.columns;
    const int64_t C = nd->stack->num_states * nd->stack->num_symbols, m = nd->stack->value_size;
    real total = 0, mean = 0;
    for (int64_t y = 0; y < C; y++) total += own->alpha[y];
    for (int64_t i = 0; i < C * m; i++) {
        const real weighed = own->alpha[i / m] / total * nd->readings[i];
        mean += weighed * own->value[i % m];
        of_bottom[i % m] += weighed;
    }
    for (int64_t y = 0; y < C; y++) {
        real gradient = 0;
        for (int64_t x = 0; x < m; x++) gradient += nd->readings[y * m + x] * own->value[x];
        of_pushes[y] += own->alpha[y] / total * (gradient - mean);
    }
}

/* The column before the first step, unless the first step makes it. */
static void rnn_nd_begin(const struct rnn_nd *nd, const real *bottom) {
    memcpy(nd->value, bottom, nd->stack->value_size * sizeof(real));
    if (!nd->stack->has_original_bottom) nd_steps_forward(&nd->steps, 0, NULL, bottom, nd->readings);
}

/* Step t, given its log weights and vector; returns 0 if the type is not precise enough. */
static int rnn_nd_step(const struct rnn_nd *nd, int64_t t, const real *logits, const real *value, real *reading) {
    if (nd->stack->has_original_bottom && t == 1) {
        const int C = (int)(nd->stack->num_states * nd->stack->num_symbols);
        const struct nd_extremes found = nd_find_extremes(logits, C);
        if (sizeof(real) == 4 && (found.masked || found.largest - found.lowest > WIDEST_RANGE)) return 0;
        if (!nd_steps_forward(&nd->steps, 0, logits, nd->value, nd->readings) && sizeof(real) == 8) return 0;
        rnn_nd_read_start(nd);
    } else if (!nd_steps_forward(&nd->steps, rnn_nd_column(nd->stack, t), logits, value, nd->readings)) return 0;
    rnn_nd_read(nd, reading);
    return 1;
}

/* Before the first step of the backward pass. */
static void rnn_nd_begin_back(const struct rnn_nd *nd) {
    memset(nd->value, 0, nd->stack->value_size * sizeof(real));
    nd_steps_begin_back(&nd->steps);
}

/* The derivatives of step t. */
static void rnn_nd_step_back(const struct rnn_nd *nd, int64_t t, const real *cotangent, real *of_logits, real *of_value) {
    const int64_t C = nd->stack->num_states * nd->stack->num_symbols, width = 2 * C + nd->stack->num_states;
    rnn_nd_read_back(nd, cotangent);
    if (nd->stack->has_original_bottom && t == 1) {
        memset(of_logits, 0, C * width * sizeof(real));
        memset(of_value, 0, nd->stack->value_size * sizeof(real));
        nd_steps_back(&nd->steps, 0, NULL, of_logits, nd->value);
        rnn_nd_read_start_back(nd, of_logits, nd->value);
    } else nd_steps_back(&nd->steps, rnn_nd_column(nd->stack, t), nd->readings, of_logits, of_value);
}

/* The gradient of the vector at the bottom, after the derivatives of all steps. */
static void rnn_nd_end_back(const struct rnn_nd *nd, real *of_bottom) {
    if (!nd->stack->has_original_bottom) nd_steps_back(&nd->steps, 0, NULL, nd->readings, nd->value);
    memcpy(of_bottom, nd->value, nd->stack->value_size * sizeof(real));
}
