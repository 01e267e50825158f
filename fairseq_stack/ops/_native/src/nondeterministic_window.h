/* The nondeterministic stack for all steps of a sequence, one after the other, as limited memory and LSTMs need it. With
 * limited memory a step needs no more than the last D columns, so each fits the caches, whatever the length.
 */

/* All columns of a sequence, and their derivatives. With limited memory these share the memory of D + 1 columns. */
struct nd_steps {
    int length; /* the number of the last column */
    int64_t window;
    int Q, S, value_size;
    struct nd_step_column *columns;
    const vector **gammas; /* as in nd_one_step */
    struct nd_step_adjoint *adjoints;
    char *working, *of_adjoints;
    size_t shared; /* bytes of the derivatives of a column, if columns share memory; else 0 */
    size_t adjoint_bytes;
    size_t bytes, forward_bytes, backward_bytes; /* of the record, and of the scratch memory of both passes */
};

/* Step t, without columns. */
INLINE struct nd_one_step nd_steps_begin(const struct nd_steps *all, int t) {
    const int kept = t > all->window ? (int)(t - all->window) : 0;
    return nd_step_begin(t, kept, all->window, all->Q, all->S, all->value_size, all->working);
}

INLINE struct nd_step_adjoint nd_steps_adjoint(const struct nd_steps *all, int t, char *memory) {
    return nd_step_lay_out_adjoint(t, all->window, all->Q, all->S, all->value_size, memory);
}

/* Lays the columns out in the record, and the rest in the scratch memory, of which `used` bytes are taken. Sizes in bytes
 * are known without any memory. */
static struct nd_steps nd_steps_lay_out(struct nd_steps all, char *record, char *memory, size_t used) {
    const int n = all.length;
    size_t forward = 0, backward = 0, largest = 0;
    for (int t = n > LANES ? n - LANES : 0; t <= n; t++) { /* the rows of D steps begin at each lane of a tile once */
        const struct nd_one_step s = nd_steps_begin(&all, t);
        const size_t both = s.bytes + nd_step_back_begin(&s, NULL).bytes, adjoint = nd_steps_adjoint(&all, t, NULL).bytes;
        if (s.bytes > forward) forward = s.bytes;
        if (both > backward) backward = both;
        if (adjoint > largest) largest = adjoint;
    }
    TAKE(all.columns, (size_t)n + 1)
    TAKE(all.gammas, (size_t)n + 1)
    TAKE(all.adjoints, (size_t)n + 1)
    all.working = memory + used;
    all.of_adjoints = all.working + backward;
    all.shared = all.window <= n ? largest : 0;
    for (int k = 0; k <= n; k++) {
        const struct nd_step_column column =
            nd_step_lay_out(k, all.window, all.Q, all.S, all.value_size, record + all.bytes);
        const size_t place = all.shared ? k % (all.window + 1) * all.shared : all.adjoint_bytes;
        const struct nd_step_adjoint adjoint = nd_steps_adjoint(&all, k, all.of_adjoints + place);
        all.bytes += column.bytes;
        if (!all.shared) all.adjoint_bytes += adjoint.bytes;
        if (!memory) continue;
        all.columns[k] = column;
        all.gammas[k] = column.gamma - (ptrdiff_t)column.tile * all.Q * all.S * all.Q * all.S;
        all.adjoints[k] = adjoint;
    }
    if (all.shared) all.adjoint_bytes = (all.window + 1) * all.shared;
    all.forward_bytes = used + forward;
    all.backward_bytes = used + backward + all.adjoint_bytes;
    return all;
}

INLINE struct nd_one_step nd_steps_at(const struct nd_steps *all, int t) {
    struct nd_one_step s = nd_steps_begin(all, t);
    s.columns = all->columns + s.kept;
    s.gammas = all->gammas + s.kept;
    s.own = all->columns[t];
    return s;
}

/* Makes column t, with its readings; returns 0 if the type is not precise enough. */
INLINE int nd_steps_forward(const struct nd_steps *all, int t, const real *logits, const real *value, real *readings) {
    const struct nd_one_step s = nd_steps_at(all, t);
    nd_step_forward(&s, logits, value, readings);
    return !nd_is_inexact(*s.exact);
}

INLINE void nd_steps_begin_back(const struct nd_steps *all) { memset(all->of_adjoints, 0, all->adjoint_bytes); }

/* The gradients of the log weights and of the vector of column t, given the cotangents of its readings or NULL. */
INLINE void nd_steps_back(const struct nd_steps *all, int t, const real *cotangents, real *of_logits, real *of_value) {
    const struct nd_one_step s = nd_steps_at(all, t);
    struct nd_step_back b = nd_step_back_begin(&s, all->working + s.bytes);
    b.earlier = all->adjoints + s.kept;
    b.own = all->adjoints[t];
    nd_step_differentiate(&s, &b, cotangents, of_logits, of_value);
    if (all->shared) memset(b.own.outer, 0, all->shared);
}

/* ---------------------------------------------------------------- calls with limited memory */

/* A sequence of a call, with room for the arrays of one step. */
struct nd_window {
    size_t num_logits, num_readings;
    real *logits, *readings, *value;
    struct nd_steps steps;
};

static struct nd_window nd_window_lay_out(const struct nd_window_call *call, char *record, char *memory) {
    const size_t Q = call->num_states, C = Q * call->num_symbols;
    struct nd_window w = {.num_logits = C * (2 * C + Q), .num_readings = C * call->value_size};
    size_t used = 0;
    TAKE(w.logits, w.num_logits)
    TAKE(w.readings, w.num_readings)
    TAKE(w.value, (size_t)call->value_size)
    const struct nd_steps sizes = {.length = call->length, .window = call->window, .Q = call->num_states,
                                   .S = call->num_symbols, .value_size = call->value_size};
    w.steps = nd_steps_lay_out(sizes, record, memory, used);
    return w;
}

INLINE struct nd_window nd_window_of(const struct nd_window_call *call, int64_t sequence, char *memory) {
    return nd_window_lay_out(call, (char *)call->workspace + sequence * call->workspace_bytes, memory);
}

/* In float, declines sequences for which that is not precise enough; in double, notes them. */
static int nd_window_forward(const void *given, int64_t sequence, char *memory) {
    const struct nd_window_call *call = given;
    const struct nd_window w = nd_window_of(call, sequence, memory);
    const size_t n = call->length, size = call->value_size;
    call->wide[sequence] = sizeof(real) == 8;
    for (size_t t = 0; t <= n; t++) {
        const size_t step = sequence * n + t - 1;
        const real *value = see_numbers(call->is_double, call->values, (sequence * (n + 1) + t) * size, size, w.value);
        const real *logits =
            see_numbers(call->is_double, t > 0 ? call->logits : NULL, step * w.num_logits, w.num_logits, w.logits);
        const int is_exact = nd_steps_forward(&w.steps, t, logits, value, w.readings);
        if (t > 0) put_numbers(call->is_double, call->readings, step * w.num_readings, w.num_readings, w.readings);
        if (is_exact) continue;
        call->inexact[sequence] = sizeof(real) == 8;
        return sizeof(real) == 8;
    }
    return 1;
}

static int nd_window_backward(const void *given, int64_t sequence, char *memory) {
    const struct nd_window_call *call = given;
    if (call->inexact[sequence]) return 1;
    if (call->wide[sequence] && sizeof(real) == 4) return 0;
    const struct nd_window w = nd_window_of(call, sequence, memory);
    const size_t n = call->length, size = call->value_size;
    nd_steps_begin_back(&w.steps);
    for (int t = n; t >= 0; t--) {
        const size_t step = sequence * n + t - 1;
        const real *cotangents = see_numbers(call->is_double, t > 0 ? call->cotangents : NULL, step * w.num_readings,
                                             w.num_readings, w.readings);
        nd_steps_back(&w.steps, t, cotangents, w.logits, w.value);
        if (t > 0) put_numbers(call->is_double, call->logit_gradients, step * w.num_logits, w.num_logits, w.logits);
        put_numbers(call->is_double, call->value_gradients, (sequence * (n + 1) + t) * size, size, w.value);
    }
    return 1;
}

/* Bytes of the columns of one sequence, and of the working memory of both passes. */
static void nd_window_sizes(const struct nd_window_call *call, size_t sizes[3]) {
    const struct nd_steps steps = nd_window_lay_out(call, NULL, NULL).steps;
    sizes[0] = steps.bytes;
    sizes[1] = steps.forward_bytes;
    sizes[2] = steps.backward_bytes;
}
