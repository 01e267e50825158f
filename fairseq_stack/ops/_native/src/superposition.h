/* The superposition stack: the readings of one sequence, and the gradients of its actions and pushed vectors. */

/* The backward pass holds the columns of this many steps at a time; for longer sequences it computes columns again. */
#define SUP_SEGMENT 128

/* ---------------------------------------------------------------- sequences */

/* Whether the stack loses elements that could be read again within n steps. */
INLINE int sup_is_limited(int n, int limit) { return limit < (n + 1) / 2; }

/* Whether the lanes are components. The sums are rounded differently, so the choice depends only on the sizes. */
INLINE int sup_by_components(int n, int m, int limit) { return sup_is_limited(n, limit) || (n > 256 && n / 2 >= m); }

/* The working memory of the passes; the forward pass has only the first five, and one column. */
struct sup_scratch {
    int tiles;
    real *actions, *values; /* of a sequence in which some are not finite, with these replaced by 0 */
    vector *panel;      /* of a right factor */
    vector *weights;    /* W: [t][tile] */
    vector *columns;    /* forward one, backward those after the steps of one segment: [t - start][d] */
    vector *kept;       /* the column before each segment: [segment][d] */
    vector *gradient;   /* of one column */
    vector *of_weights; /* the gradient of W: [t][tile] */
    vector *sums;       /* those of the actions, to be summed over lanes: [t][3] */
    size_t forward_bytes, bytes;
};

INLINE struct sup_scratch sup_lay_out(int n, int m, int limit, char *memory) {
    struct sup_scratch a = {.tiles = sup_by_components(n, m, limit) ? 0 : (n + LANES - 1) / LANES};
    size_t size = sup_column_size(n, limit), used = 0;
    TAKE(a.actions, (size_t)n * 3)
    TAKE(a.values, (size_t)n * m)
    TAKE(a.panel, a.tiles ? (size_t)(n > m ? n : m) * SUP_COLUMNS : 0)
    TAKE(a.weights, (size_t)n * a.tiles)
    a.forward_bytes = used + (size * sizeof(vector) + 63) / 64 * 64;
    TAKE(a.columns, (n < SUP_SEGMENT ? n + 1 : SUP_SEGMENT) * size)
    TAKE(a.kept, (n / SUP_SEGMENT + 1) * size)
    TAKE(a.gradient, size)
    TAKE(a.of_weights, (size_t)n * a.tiles)
    TAKE(a.sums, (size_t)3 * n + LANES)
    a.bytes = used;
    return a;
}

/* The arguments of one sequence. */
struct sup_sequence {
    int length, size, limit;
    const real *actions, *values; /* [t][3], and [t][component] */
    const real *given_actions, *given_values; /* the same with what is not finite; else NULL */
};

INLINE const real *sup_copy_finite(real *to, const real *from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = isfinite(from[i]) ? from[i] : 0;
    return to;
}

/* Sequence number `sequence` of a call. What is not finite must not reach earlier readings, in which it has the weight
 * 0, nor gradients through these: it is computed with 0 in its place, and goes to its readings in the end. */
INLINE struct sup_sequence sup_of_call(const struct sup_call *call, int64_t sequence, const struct sup_scratch *a) {
    const size_t n = call->length, m = call->size;
    const real *actions = (const real *)call->actions + sequence * n * 3;
    const real *values = (const real *)call->values + sequence * n * m;
    struct sup_sequence found = {
        .length = n, .size = m, .limit = call->depth_limit, .actions = actions, .values = values};
    if (are_finite(actions, n * 3) && are_finite(values, n * m)) return found;
    found.given_actions = actions;
    found.given_values = values;
    found.actions = sup_copy_finite(a->actions, actions, n * 3);
    found.values = sup_copy_finite(a->values, values, n * m);
    return found;
}

/* For a sequence in which something is not finite: makes the readings to which it comes NaN, unless they are NULL;
 * returns whether cotangents of them are not 0, unless those are NULL. */
static __attribute__((noinline)) int sup_spoil(const struct sup_sequence *seq, real *readings,
                                                     const real *cotangents) {
    int used = 0;
    for (int x = 0; x < seq->size; x++) {
        int spoilt = 0;
        for (int t = 0; t < seq->length; t++) {
            const real *action = seq->given_actions + (size_t)t * 3;
            const size_t at = (size_t)t * seq->size + x;
            spoilt |= !isfinite(action[0]) || !isfinite(action[1]) || !isfinite(action[2]);
            spoilt |= !isfinite(seq->given_values[at]);
            if (spoilt && readings) readings[at] = (real)NAN;
            if (spoilt && cotangents) used |= cotangents[at] != 0;
        }
    }
    return used;
}

/* ---------------------------------------------------------------- passes */

INLINE struct sup_tile sup_tile_of_times(const struct sup_sequence *seq, const struct sup_scratch *a, int number) {
    return (struct sup_tile){
        .first = number * LANES, .length = seq->length, .actions = seq->actions, .weights = a->weights + number,
        .step = a->tiles, .limit = seq->limit};
}

INLINE struct sup_tile sup_tile_of_components(const struct sup_sequence *seq, int first) {
    const int count = seq->size - first;
    return (struct sup_tile){
        .length = seq->length, .actions = seq->actions, .values = seq->values + first, .size = seq->size,
        .count = count < LANES ? count : LANES, .limit = seq->limit};
}

/* The column before the first step. */
INLINE void sup_begin(vector *column) { memset(column, 0, 2 * sizeof(vector)); }

INLINE void sup_components_forward(const struct sup_sequence *seq, vector *column, real *readings) {
    for (int x = 0; x < seq->size; x += LANES) {
        const struct sup_tile tile = sup_tile_of_components(seq, x);
        sup_begin(column);
        for (int t = 0; t < tile.length; t++) {
            sup_step(&tile, t, column, column);
            store(readings + (size_t)t * tile.size + x, column[0], tile.count);
        }
    }
}

INLINE void sup_times_forward(const struct sup_sequence *seq, const struct sup_scratch *a, real *readings) {
    for (int number = 0; number < a->tiles; number++) {
        const struct sup_tile tile = sup_tile_of_times(seq, a, number);
        sup_clear_weights(&tile);
        sup_begin(a->columns);
        for (int t = tile.first; t < tile.length; t++) sup_step(&tile, t, a->columns, a->columns);
    }
    const struct sup_factor weights = {(real *)a->weights, a->tiles * LANES, 1, 1, 0};
    sup_product(weights, seq->length, seq->values, seq->size, readings, a->panel);
}

static int sup_forward(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length, m = call->size;
    const struct sup_scratch a = sup_lay_out(n, m, call->depth_limit, scratch);
    const struct sup_sequence seq = sup_of_call(call, sequence, &a);
    real *readings = (real *)call->readings + sequence * n * m;
    if (sup_by_components(n, m, call->depth_limit)) sup_components_forward(&seq, a.columns, readings);
    else sup_times_forward(&seq, &a, readings);
    if (seq.given_values) sup_spoil(&seq, readings, NULL);
    return 1;
}

/* The columns before each segment. */
INLINE void sup_keep(const struct sup_tile *tile, const struct sup_scratch *a, int size) {
    const vector *before = a->kept;
    vector *after = a->kept;
    sup_begin(after);
    for (int start = tile->first; start + SUP_SEGMENT < tile->length; start += SUP_SEGMENT) {
        after += size;
        for (int t = start; t < start + SUP_SEGMENT; t++) {
            sup_step(tile, t, before, after);
            before = after;
        }
    }
}

/* The gradient of what is pushed in step t, given that of the column after it; what the reading adds comes first. */
INLINE void sup_push_back(const struct sup_tile *tile, const struct sup_scratch *a, int t, const vector *of_weights,
                          const real *cotangents, real *gradients) {
    const int lane = t - tile->first;
    vector *top = a->gradient, *sums = a->sums + 3 * t;
    if (tile->values) {
        const size_t at = (size_t)t * tile->size;
        *top += load(cotangents + at, tile->count);
        sums[0] += *top * sup_value(tile, t);
        store(gradients + at, tile->actions[3 * (size_t)t] * *top, tile->count);
    } else {
        *top += (vector)((ivector)of_weights[t * tile->step] & (lane_numbers() <= lane));
        if (lane < LANES) sums[0][lane] += (*top)[lane];
    }
}

/* What a tile gives for the gradients of the actions; and W from push times, given the gradient of W, or the gradients
 * of their values from components, given the cotangents. */
INLINE void sup_tile_back(const struct sup_tile *tile, const struct sup_scratch *a, const vector *of_weights,
                          const real *cotangents, real *gradients) {
    const int n = tile->length, size = sup_column_size(n - tile->first, tile->limit);
    const int segments = (n - 1 - tile->first) / SUP_SEGMENT;
    sup_keep(tile, a, size);
    memset(a->gradient, 0, size * sizeof(vector));
    for (int segment = segments; segment >= 0; segment--) {
        const int start = tile->first + segment * SUP_SEGMENT, stop = start + SUP_SEGMENT < n ? start + SUP_SEGMENT : n;
        const vector *kept = a->kept + (size_t)segment * size;
        for (int t = start; t < stop; t++) {
            vector *after = a->columns + (size_t)(t - start) * size;
            sup_step(tile, t, t > start ? after - size : kept, after);
        }
        for (int t = stop - 1; t >= start; t--) {
            const int lane = t - tile->first;
            const vector *before = t > start ? a->columns + (size_t)(t - 1 - start) * size : kept;
            sup_push_back(tile, a, t, of_weights, cotangents, gradients);
            sup_step_back(tile, t, before, a->gradient, a->sums + 3 * t);
            for (int d = 0; !tile->values && lane < LANES && d < lane; d++) /* not there before it is pushed */
                a->gradient[d] = (vector)((ivector)a->gradient[d] & (lane_numbers() < lane));
        }
    }
}

INLINE void sup_components_backward(const struct sup_sequence *seq, const struct sup_scratch *a, const real *cotangents,
                                    real *gradients) {
    for (int x = 0; x < seq->size; x += LANES) {
        const struct sup_tile tile = sup_tile_of_components(seq, x);
        sup_tile_back(&tile, a, NULL, cotangents + x, gradients + x);
    }
}

INLINE void sup_times_backward(const struct sup_sequence *seq, const struct sup_scratch *a, const real *cotangents,
                               real *gradients) {
    sup_inner_products(cotangents, seq->values, seq->length, seq->size, a->of_weights, a->tiles, a->panel);
    for (int number = 0; number < a->tiles; number++) {
        const struct sup_tile tile = sup_tile_of_times(seq, a, number);
        sup_clear_weights(&tile);
        sup_tile_back(&tile, a, a->of_weights + number, NULL, NULL);
    }
    const struct sup_factor transposed = {(real *)a->weights, 1, a->tiles * LANES, 0, 1};
    sup_product(transposed, seq->length, cotangents, seq->size, gradients, a->panel);
}

static int sup_backward(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length, m = call->size;
    const struct sup_scratch a = sup_lay_out(n, m, call->depth_limit, scratch);
    const struct sup_sequence seq = sup_of_call(call, sequence, &a);
    const real *cotangents = (const real *)call->cotangents + sequence * n * m;
    real *of_actions = (real *)call->action_gradients + sequence * n * 3;
    real *of_values = (real *)call->value_gradients + sequence * n * m;
    if (seq.given_values && sup_spoil(&seq, NULL, cotangents)) { /* the loss is NaN, and so is its gradient */
        for (size_t i = 0; i < (size_t)n * 3; i++) of_actions[i] = (real)NAN;
        for (size_t i = 0; i < (size_t)n * m; i++) of_values[i] = (real)NAN;
        return 1;
    }
    memset(a.sums, 0, (3 * n + LANES) * sizeof(vector));
    if (sup_by_components(n, m, call->depth_limit)) sup_components_backward(&seq, &a, cotangents, of_values);
    else sup_times_backward(&seq, &a, cotangents, of_values);
    for (int i = 0; i < 3 * n; i += LANES) store(of_actions + i, lane_sums(a.sums + i), 3 * n - i);
    return 1;
}

static void sup_sizes(int n, int m, int limit, size_t sizes[2]) {
    const struct sup_scratch a = sup_lay_out(n, m, limit, NULL);
    sizes[0] = a.forward_bytes;
    sizes[1] = a.bytes;
}
