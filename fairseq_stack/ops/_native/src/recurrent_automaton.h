/* An LSTM with stacks: the nondeterministic stack that it drives, for one sequence. Its steps and their columns are
 * those of nondeterministic_step.h, and with limited memory the last D + 1 columns share the memory of derivatives.
 */

struct rnn_nd {
    const struct rnn_stack *stack;
    struct nd_window_call call; /* its sizes alone; `length` is the number of the last column */
    struct nd_window_sequence all;
    real *ones, *readings; /* a vector of ones; room for the readings of all configurations, */
    real *value;           /* and for the vector at the bottom, backward its gradient */
    char *columns, *adjoints, *working;
    size_t largest; /* bytes of the derivatives of a column, if some share memory; else 0 */
    size_t bytes, forward_bytes, backward_bytes;
};

/* The column that step t of n makes; the first step after the original bottom makes column 0. */
INLINE int rnn_nd_column(const struct rnn_stack *stack, int64_t t) {
    return (int)(stack->has_original_bottom && t > 0 ? t - 1 : t);
}

INLINE struct nd_step_adjoint rnn_nd_adjoint(const struct nd_window_call *call, int column, char *memory) {
    return nd_step_lay_out_adjoint(column, call->window, call->num_states, call->num_symbols, call->value_size, memory);
}

/* Lays out the columns in the record, and in the scratch memory what the passes need. Sizes in bytes are known without
 * any memory. */
static struct rnn_nd rnn_nd_lay_out(const struct rnn_stack *stack, int64_t n, char *record, char *scratch) {
    struct rnn_nd nd = {.stack = stack, .columns = record};
    const int64_t C = stack->num_states * stack->num_symbols;
    nd.call.length = rnn_nd_column(stack, n - 1);
    nd.call.num_states = stack->num_states;
    nd.call.num_symbols = stack->num_symbols;
    nd.call.value_size = stack->value_size;
    nd.call.window = stack->limit;
    const struct nd_window_bytes most = nd_window_largest(&nd.call);
    char *memory = scratch;
    size_t used = 0, of_adjoints = 0;
    TAKE(nd.ones, (size_t)stack->value_size)
    TAKE(nd.readings, (size_t)C * stack->value_size)
    TAKE(nd.value, (size_t)stack->value_size)
    nd.all = nd_window_lay_out(&nd.call, scratch + used);
    used += nd.all.bytes;
    nd.working = scratch + used;
    nd.forward_bytes = used + most.forward;
    nd.adjoints = nd.working + most.backward;
    if (stack->limit <= nd.call.length) {
        nd.largest = most.adjoint;
        of_adjoints = (stack->limit + 1) * most.adjoint;
    }
    for (int k = 0; k <= nd.call.length; k++) {
        nd.bytes += nd_step_lay_out(k, stack->limit, stack->num_states, stack->num_symbols, stack->value_size, NULL).bytes;
        if (!nd.largest) of_adjoints += rnn_nd_adjoint(&nd.call, k, NULL).bytes;
    }
    nd.backward_bytes = used + most.backward + of_adjoints;
    return nd;
}

/* Sets the pointers to all columns. */
static void rnn_nd_set_columns(const struct rnn_nd *nd) {
    const struct rnn_stack *stack = nd->stack;
    const int64_t C = stack->num_states * stack->num_symbols;
    char *memory = nd->columns;
    for (int k = 0; k <= nd->call.length; k++) {
        const struct nd_step_column column =
            nd_step_lay_out(k, stack->limit, stack->num_states, stack->num_symbols, stack->value_size, memory);
        nd->all.columns[k] = column;
        nd->all.gammas[k] = column.gamma - (ptrdiff_t)column.tile * C * C;
        memory += column.bytes;
    }
    for (int64_t m = 0; m < stack->value_size; m++) nd->ones[m] = 1;
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

/* Makes a column; returns 0 if the type is not precise enough. */
INLINE int rnn_nd_make(const struct rnn_nd *nd, int column, const real *logits, const real *value) {
    const struct nd_one_step s = nd_window_step(&nd->call, &nd->all, column, nd->working);
    nd_step_forward(&s, logits, value, nd->readings);
    return !nd_is_inexact(*s.exact);
}

/* After the first step with the original bottom: the reading is the distribution of its pushes. */
INLINE void rnn_nd_read_start(const struct rnn_nd *nd) {
    const struct nd_step_column *own = nd->all.columns;
    const int64_t C = nd->stack->num_states * nd->stack->num_symbols, m = nd->stack->value_size;
    real total = 0;
    for (int64_t y = 0; y < C; y++) total += own->alpha[y];
    for (int64_t y = 0; y < C; y++)
        for (int64_t x = 0; x < m; x++)
            nd->readings[y * m + x] = own->alpha[y] / total * own->value[x] + own->marks[x] + *own->mark;
}

/* What the cotangents of that reading add to the gradients of the pushes and of the vector at the bottom. */
INLINE void rnn_nd_read_start_back(const struct rnn_nd *nd, real *of_pushes, real *of_bottom) {
    const struct nd_step_column *own = nd->all.columns;
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
    rnn_nd_set_columns(nd);
    memcpy(nd->value, bottom, nd->stack->value_size * sizeof(real));
    if (!nd->stack->has_original_bottom) rnn_nd_make(nd, 0, NULL, bottom);
}

/* Step t, given its log weights and vector; returns 0 if the type is not precise enough. */
static int rnn_nd_step(const struct rnn_nd *nd, int64_t t, const real *logits, const real *value, real *reading) {
    if (nd->stack->has_original_bottom && t == 1) {
        const int C = (int)(nd->stack->num_states * nd->stack->num_symbols);
        const struct nd_extremes found = nd_find_extremes(logits, C);
        if (sizeof(real) == 4 && (found.masked || found.largest - found.lowest > WIDEST_RANGE)) return 0;
        if (!rnn_nd_make(nd, 0, logits, nd->value) && sizeof(real) == 8) return 0;
        rnn_nd_read_start(nd);
    } else if (!rnn_nd_make(nd, rnn_nd_column(nd->stack, t), logits, value)) return 0;
    rnn_nd_read(nd, reading);
    return 1;
}

/* Before the first step of the backward pass. */
static void rnn_nd_begin_back(const struct rnn_nd *nd) {
    rnn_nd_set_columns(nd);
    memset(nd->value, 0, nd->stack->value_size * sizeof(real));
    char *memory = nd->adjoints;
    for (int k = 0; k <= nd->call.length; k++) {
        if (nd->largest) memory = nd->adjoints + k % (nd->stack->limit + 1) * nd->largest;
        const struct nd_step_adjoint adjoint = rnn_nd_adjoint(&nd->call, k, memory);
        nd->all.adjoints[k] = adjoint;
        if (!nd->largest) memory += adjoint.bytes;
    }
    memset(nd->adjoints, 0, nd->largest ? (nd->stack->limit + 1) * nd->largest : (size_t)(memory - nd->adjoints));
}

/* The gradients of the log weights and of the vector of a column, given the cotangents in `readings` or NULL. */
INLINE void rnn_nd_differentiate(const struct rnn_nd *nd, int column, const real *cotangents, real *of_logits,
                                 real *of_value) {
    const struct nd_one_step s = nd_window_step(&nd->call, &nd->all, column, nd->working);
    struct nd_step_back b = nd_step_back_begin(&s, nd->working + s.bytes);
    b.earlier = nd->all.adjoints + s.kept;
    b.own = nd->all.adjoints[column];
    nd_step_differentiate(&s, &b, cotangents, of_logits, of_value);
    if (nd->largest) memset(b.own.outer, 0, nd->largest);
}

/* The derivatives of step t. */
static void rnn_nd_step_back(const struct rnn_nd *nd, int64_t t, const real *cotangent, real *of_logits, real *of_value) {
    const int64_t C = nd->stack->num_states * nd->stack->num_symbols, width = 2 * C + nd->stack->num_states;
    rnn_nd_read_back(nd, cotangent);
    if (nd->stack->has_original_bottom && t == 1) {
        memset(of_logits, 0, C * width * sizeof(real));
        memset(of_value, 0, nd->stack->value_size * sizeof(real));
        rnn_nd_differentiate(nd, 0, NULL, of_logits, nd->value);
        rnn_nd_read_start_back(nd, of_logits, nd->value);
    } else rnn_nd_differentiate(nd, rnn_nd_column(nd->stack, t), nd->readings, of_logits, of_value);
}

/* The gradient of the vector at the bottom, after the derivatives of all steps. */
static void rnn_nd_end_back(const struct rnn_nd *nd, real *of_bottom) {
    if (!nd->stack->has_original_bottom) rnn_nd_differentiate(nd, 0, NULL, nd->readings, nd->value);
    memcpy(of_bottom, nd->value, nd->stack->value_size * sizeof(real));
}
