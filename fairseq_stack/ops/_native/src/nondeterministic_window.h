/* The nondeterministic stack with limited memory: all steps of a sequence, one after the other. A step needs no more than
 * the last D columns, so each fits the caches, whatever the length.
 */

/* The most bytes that a column, its derivatives, and the working memory of both passes of a step can take. */
struct nd_window_bytes {
    size_t column, adjoint, forward, backward;
};

static struct nd_window_bytes nd_window_largest(const struct nd_window_call *call) {
    const int Q = call->num_states, S = call->num_symbols, size = call->value_size, n = call->length;
    struct nd_window_bytes most = {0};
    for (int t = n > LANES ? n - LANES : 0; t <= n; t++) { /* the rows of D steps begin at each lane of a tile once */
        const int kept = t > call->window ? t - call->window : 0;
        const struct nd_one_step s = nd_step_begin(t, kept, call->window, Q, S, size, NULL);
        const size_t column = nd_step_lay_out(t, call->window, Q, S, size, NULL).bytes;
        const size_t adjoint = nd_step_lay_out_adjoint(t, call->window, Q, S, size, NULL).bytes;
        const size_t backward = s.bytes + nd_step_back_begin(&s, NULL).bytes;
        if (column > most.column) most.column = column;
        if (adjoint > most.adjoint) most.adjoint = adjoint;
        if (s.bytes > most.forward) most.forward = s.bytes;
        if (backward > most.backward) most.backward = backward;
    }
    return most;
}

/* All columns of a sequence, and their derivatives. The derivatives share the memory of D + 1 columns. */
struct nd_window_sequence {
    struct nd_step_column *columns;
    const vector **gammas; /* as in nd_one_step */
    struct nd_step_adjoint *adjoints;
    size_t bytes;
};

static struct nd_window_sequence nd_window_lay_out(const struct nd_window_call *call, char *memory) {
    struct nd_window_sequence sequence;
    size_t used = 0, columns = call->length + 1;
    TAKE(sequence.columns, columns)
    TAKE(sequence.gammas, columns)
    TAKE(sequence.adjoints, columns)
    sequence.bytes = used;
    return sequence;
}

static void nd_window_set_columns(const struct nd_window_call *call, const struct nd_window_sequence *all, size_t bytes,
                                  char *memory) {
    const int Q = call->num_states, S = call->num_symbols, C = Q * S;
    for (int k = 0; k <= call->length; k++) {
        all->columns[k] = nd_step_lay_out(k, call->window, Q, S, call->value_size, memory + k * bytes);
        all->gammas[k] = all->columns[k].gamma - (ptrdiff_t)all->columns[k].tile * C * C;
    }
}

static struct nd_one_step nd_window_step(const struct nd_window_call *call, const struct nd_window_sequence *all, int t,
                                         char *memory) {
    const int kept = t > call->window ? t - call->window : 0;
    struct nd_one_step s =
        nd_step_begin(t, kept, call->window, call->num_states, call->num_symbols, call->value_size, memory);
    s.columns = all->columns + kept;
    s.gammas = all->gammas + kept;
    s.own = all->columns[t];
    return s;
}

/* A part of an array of the call, which may be of float where the kernel is of double. */
INLINE const real *nd_window_get(const struct nd_window_call *call, const void *array, size_t first, size_t count,
                                 real *room) {
    if (sizeof(real) == 4 || call->is_double) return (const real *)array + first;
    for (size_t i = 0; i < count; i++) room[i] = ((const float *)array)[first + i];
    return room;
}

INLINE void nd_window_put(const struct nd_window_call *call, void *array, size_t first, size_t count,
                          const real *from) {
    if (sizeof(real) == 4 || call->is_double) memcpy((real *)array + first, from, count * sizeof(real));
    else
        for (size_t i = 0; i < count; i++) ((float *)array)[first + i] = (float)from[i];
}

/* Room for the arrays of one step. */
struct nd_window_room {
    real *logits, *readings, *value;
    size_t bytes;
};

INLINE struct nd_window_room nd_window_make_room(const struct nd_window_call *call, char *memory) {
    const size_t Q = call->num_states, C = Q * call->num_symbols;
    struct nd_window_room room;
    size_t used = 0;
    TAKE(room.logits, C * (2 * C + Q))
    TAKE(room.readings, C * call->value_size)
    TAKE(room.value, (size_t)call->value_size)
    room.bytes = used;
    return room;
}

/* In float, declines sequences for which that is not precise enough; in double, notes them. */
static int nd_window_forward(const void *given, int64_t sequence, char *memory) {
    const struct nd_window_call *call = given;
    const struct nd_window_bytes most = nd_window_largest(call);
    const struct nd_window_room room = nd_window_make_room(call, memory);
    const size_t n = call->length, size = call->value_size, C = call->num_states * call->num_symbols;
    const size_t logits = C * (2 * C + call->num_states), readings = C * size;
    const struct nd_window_sequence all = nd_window_lay_out(call, memory + room.bytes);
    char *working = memory + room.bytes + all.bytes;
    nd_window_set_columns(call, &all, most.column, (char *)call->workspace + sequence * call->workspace_bytes);
    call->wide[sequence] = sizeof(real) == 8;
    for (size_t t = 0; t <= n; t++) {
        const struct nd_one_step s = nd_window_step(call, &all, t, working);
        const real *value = nd_window_get(call, call->values, (sequence * (n + 1) + t) * size, size, room.value);
        const size_t step = sequence * n + t - 1;
        nd_step_forward
        (&s, t > 0 ? nd_window_get(call, call->logits, step * logits, logits, room.logits) : NULL, value,
         room.readings);
        if (t > 0) nd_window_put(call, call->readings, step * readings, readings, room.readings);
        if (!nd_is_inexact(*s.exact)) continue;
        call->inexact[sequence] = sizeof(real) == 8;
        return sizeof(real) == 8;
    }
    return 1;
}

static int nd_window_backward(const void *given, int64_t sequence, char *memory) {
    const struct nd_window_call *call = given;
    if (call->inexact[sequence]) return 1;
    if (call->wide[sequence] && sizeof(real) == 4) return 0;
    const struct nd_window_bytes most = nd_window_largest(call);
    const struct nd_window_room room = nd_window_make_room(call, memory);
    const size_t n = call->length, size = call->value_size, C = call->num_states * call->num_symbols;
    const size_t logits = C * (2 * C + call->num_states), readings = C * size;
    const size_t places = (size_t)(call->window < call->length ? call->window : call->length) + 1;
    const struct nd_window_sequence all = nd_window_lay_out(call, memory + room.bytes);
    char *working = memory + room.bytes + all.bytes, *adjoints = working + most.backward;
    nd_window_set_columns(call, &all, most.column, (char *)call->workspace + sequence * call->workspace_bytes);
    for (size_t k = 0; k <= n; k++)
        all.adjoints[k] = nd_step_lay_out_adjoint(k, call->window, call->num_states, call->num_symbols, size,
                                                  adjoints + k % places * most.adjoint);
    memset(adjoints, 0, places * most.adjoint);
    for (int t = n; t >= 0; t--) {
        const struct nd_one_step s = nd_window_step(call, &all, t, working);
        struct nd_step_back b = nd_step_back_begin(&s, working + s.bytes);
        b.earlier = all.adjoints + s.kept;
        b.own = all.adjoints[t];
        const size_t step = sequence * n + t - 1;
        nd_step_differentiate(
            &s, &b, t > 0 ? nd_window_get(call, call->cotangents, step * readings, readings, room.readings) : NULL,
            room.logits, room.value);
        if (t > 0) nd_window_put(call, call->logit_gradients, step * logits, logits, room.logits);
        nd_window_put(call, call->value_gradients, (sequence * (n + 1) + t) * size, size, room.value);
        memset(adjoints + t % places * most.adjoint, 0, most.adjoint);
    }
    return 1;
}

/* Bytes of the columns of one sequence, and of the working memory of both passes. */
static void nd_window_sizes(const struct nd_window_call *call, size_t sizes[3]) {
    const struct nd_window_bytes most = nd_window_largest(call);
    const int64_t n = call->length, places = call->window < n ? call->window + 1 : n + 1;
    sizes[0] = (n + 1) * most.column;
    const size_t room = nd_window_make_room(call, NULL).bytes + nd_window_lay_out(call, NULL).bytes;
    sizes[1] = room + most.forward;
    sizes[2] = room + most.backward + places * most.adjoint;
}
