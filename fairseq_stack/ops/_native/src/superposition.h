/* The superposition stack: the readings of one sequence, and the gradients of its actions and pushed vectors.
 *
 * Notation as in docs/algorithm.md: F_t(d) is the weight with which the vector that was pushed in step s is at depth d
 * after step t. Steps are counted from 0, and depth 0 is the top: W_t[s] = F_t(0), and the readings are W V. Pushed
 * vectors do not interact, so the lanes are LANES push times, a tile. A column is F_t, or its gradient, for a tile.
 * W and its gradient are matrices of vectors, [t][tile]. That takes O(n^3 + n^2 m) operations.
 *
 * Long sequences of short vectors take O(n^2 m) operations instead: components do not interact either, so the lanes are
 * components of the vectors, and a column is V_t, or its gradient, for a tile of them. Where vectors are much shorter
 * than LANES, a tile has them several times: its column is cut into as many parts of the same height, side by side.
 *
 * Nothing is kept for the backward pass.
 */

/* The backward pass has the columns of so many steps at a time, and computes those of longer sequences once more. */
#undef SUP_SEGMENT
#define SUP_SEGMENT 128

/* ---------------------------------------------------------------- matrix products */

/* A tile of a product is kept in registers: AVX-512 has 32 of them, the others 16. */
#undef SUP_ROWS
#undef SUP_COLUMNS
#if VECTOR_BYTES == 64
#define SUP_ROWS 6
#define SUP_COLUMNS 4
#else
#define SUP_ROWS 4
#define SUP_COLUMNS 3
#endif

/* The left factor: its number in row r and column k is at[r * row_step + k * step]. */
#define sup_factor NAME(sup_factor)
struct sup_factor {
    const real *at;
    ptrdiff_t row_step, step;
    int is_lower, is_upper; /* 0 where k > r, or where k < r; only k < r + SUP_ROWS, or k >= r, are looked at */
};

/* A panel is as many columns of the right factor as a tile has: [k][x]. */
#define sup_panel_columns NAME(sup_panel_columns)
INLINE int sup_panel_columns(int width) {
    return width > (SUP_COLUMNS - 1) * LANES ? SUP_COLUMNS : width > LANES ? 2 : 1;
}

/* So many products are added up at a time, and then the sums: rounding errors grow with the number of additions. */
#undef SUP_BLOCK
#define SUP_BLOCK 64

/* The product for a tile, of which `width` numbers a row are wanted. W is largest next to its diagonal, and what is
 * large is added last. */
#define sup_product_tile NAME(sup_product_tile)
INLINE void sup_product_tile(int rows, int columns, struct sup_factor left, int row, int depth, const vector *panel,
                             real *out, ptrdiff_t out_step, int width) {
    const int begin = left.is_upper ? row : 0;
    const int end = left.is_lower && row + rows < depth ? row + rows : depth;
    const int forward = left.is_upper ? -1 : 1;
    int k = left.is_upper ? end - 1 : begin;
    const real *from = left.at + row * left.row_step + k * left.step;
    vector sums[SUP_ROWS][SUP_COLUMNS] = {{{0}}};
    for (int rest = end - begin; rest > 0; rest -= SUP_BLOCK) {
        vector tile[SUP_ROWS][SUP_COLUMNS] = {{{0}}};
        for (int i = 0; i < rest && i < SUP_BLOCK; i++, k += forward, from += forward * left.step) {
            vector right[SUP_COLUMNS];
            UNROLL for (int x = 0; x < columns; x++) right[x] = panel[k * columns + x];
            UNROLL for (int r = 0; r < rows; r++)
                UNROLL for (int x = 0; x < columns; x++) tile[r][x] += from[r * left.row_step] * right[x];
        }
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int x = 0; x < columns; x++) sums[r][x] += tile[r][x];
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int x = 0; x < columns; x++)
            store(out + (row + r) * out_step + x * LANES, sums[r][x], width - x * LANES);
}

/* The same for the rows first <= r < rows; the last tile may overlap the one before. */
#define sup_product_columns NAME(sup_product_columns)
INLINE void sup_product_columns(int columns, struct sup_factor left, int first, int rows, int depth,
                                const vector *panel, real *out, ptrdiff_t out_step, int width) {
    int row = first;
    for (; row < rows && rows >= SUP_ROWS; row += SUP_ROWS) {
        if (row > rows - SUP_ROWS) row = rows - SUP_ROWS;
        sup_product_tile(SUP_ROWS, columns, left, row, depth, panel, out, out_step, width);
    }
    for (; row < rows; row++) sup_product_tile(1, columns, left, row, depth, panel, out, out_step, width);
}

static __attribute__((noinline)) void NAME(sup_panel_product)(struct sup_factor left, int first, int rows, int depth,
                                                              const vector *panel, real *out, ptrdiff_t out_step,
                                                              int width) {
    const int columns = sup_panel_columns(width);
    if (columns == 1) sup_product_columns(1, left, first, rows, depth, panel, out, out_step, width);
    else if (columns == 2) sup_product_columns(2, left, first, rows, depth, panel, out, out_step, width);
    else sup_product_columns(SUP_COLUMNS, left, first, rows, depth, panel, out, out_step, width);
}

/* out[r] = sum_k left[r, k] right[k] for r < length, where right[k] and out[r] are vectors of this size. */
#define sup_product NAME(sup_product)
INLINE void sup_product(struct sup_factor left, int length, const real *right, int size, real *out, vector *panel) {
    for (int x = 0; x < size;) {
        const int columns = sup_panel_columns(size - x);
        for (int k = 0; k < length; k++)
            for (int column = 0; column < columns; column++) {
                const int at = x + column * LANES;
                panel[k * columns + column] = load(right + (size_t)k * size + at, size - at);
            }
        NAME(sup_panel_product)(left, 0, length, length, panel, out + x, size, size - x);
        x += columns * LANES;
    }
}

/* Row i of x becomes column i. */
#define transpose NAME(transpose)
INLINE void transpose(vector x[LANES]) {
    UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
        ivector mask = (lane_numbers() & step) != 0;
        UNROLL for (int i = 0; i < LANES; i++) {
            if (i & step) continue;
            vector first = x[i], second = x[i + step];
            x[i] = choose(mask, exchange(second, step), first);
            x[i + step] = choose(mask, second, exchange(first, step));
        }
    }
}

/* out[t][s] = the product of left[t] and right[s], vectors of this size, for s <= t < length; others are any. */
#define sup_inner_products NAME(sup_inner_products)
INLINE void sup_inner_products(const real *left, const real *right, int length, int size, vector *out,
                               ptrdiff_t out_step, vector *panel) {
    for (int s = 0; s < length;) {
        const int columns = sup_panel_columns(length - s);
        for (int column = 0; column < columns; column++)
            for (int k = 0; k < size; k += LANES) {
                const int row = s + column * LANES, count = size - k < LANES ? size - k : LANES;
                vector square[LANES];
                for (int i = 0; i < LANES; i++)
                    square[i] = load(right + (size_t)(row + i) * size + k, row + i < length ? count : 0);
                transpose(square);
                for (int i = 0; i < count; i++) panel[(k + i) * columns + column] = square[i];
            }
        struct sup_factor factor = {left, size, 1, 0, 0};
        NAME(sup_panel_product)(factor, s, length, size, panel, (real *)out + s, out_step * LANES, columns * LANES);
        s += columns * LANES;
    }
}

/* ---------------------------------------------------------------- steps */

/* A tile of push times, first, first + 1, ..., of which those below `length` are steps; or, if it has values, of
 * components: then `first` is 0. */
#define sup_tile NAME(sup_tile)
struct sup_tile {
    int first, length;
    const real *actions; /* push, no-op and pop of step t: [t][3] */
    vector *weights;     /* W_t is at weights[t * step], and where the gradient of W is, that of W_t likewise */
    ptrdiff_t step;
    const real *values; /* components of v_t are at values + t * size; other arrays likewise */
    int size, count;    /* `count` of them are in the tile */
    int parts;          /* of a column: component x of part p is in the lane p * LANES / parts + x */
};

/* The depths of F_t that matter: up to t there were no more pushes, and after t there are no more pops. */
#define sup_height NAME(sup_height)
INLINE int sup_height(const struct sup_tile *s, int t) {
    if (s->parts > 1) return ((s->length + 1) / 2 + s->parts - 1) / s->parts; /* all depths, beside each other */
    const int pushes = t - s->first + 1, pops = s->length - t;
    return pushes < pops ? pushes : pops;
}

/* Room for any column of the tile: a step reads up to two depths below those that matter. */
#define sup_column_size NAME(sup_column_size)
INLINE int sup_column_size(int length) { return (length + 1) / 2 + 2; }

/* What is above the top of each part, given the bottom of the column and what is above the top of the first. */
#define sup_above NAME(sup_above)
INLINE vector sup_above(const struct sup_tile *s, vector bottom, vector top) {
    const int lanes = LANES / s->parts;
    return choose(lane_numbers() < lanes, top, rotate(bottom, -lanes));
}

/* What is below the bottom of each part, given the top of the column. */
#define sup_below NAME(sup_below)
INLINE vector sup_below(const struct sup_tile *s, vector top) {
    const int lanes = LANES / s->parts;
    return (vector)((ivector)rotate(top, lanes) & (lane_numbers() < LANES - lanes));
}

#define sup_value NAME(sup_value)
INLINE vector sup_value(const struct sup_tile *s, int t) { return load(s->values + (size_t)t * s->size, s->count); }

/* Eq. 5: F_t or V_t from that of the step before, which may be the same column. */
#define sup_step NAME(sup_step)
INLINE void sup_step(const struct sup_tile *s, int t, const vector *before, vector *after) {
    const int height = sup_height(s, t), lane = t - s->first;
    const real *action = s->actions + (size_t)t * 3;
    const vector push = splat(action[0]), noop = splat(action[1]), pop = splat(action[2]);
    vector above = {0}, at = before[0], end = {0};
    if (s->values) above = sup_value(s, t);
    if (s->parts > 1) {
        above = sup_above(s, before[height - 1], above);
        end = sup_below(s, at);
    }
    const int last = s->parts > 1 ? height - 1 : height;
    _Pragma("GCC unroll 4") for (int d = 0; d < last; d++) {
        vector below = before[d + 1];
        after[d] = push * above + noop * at + pop * below;
        above = at;
        at = below;
    }
    if (s->parts > 1) after[last] = push * above + noop * at + pop * end;
    after[height] = after[height + 1] = (vector){0};
    if (s->values) return;
    if (lane < LANES) after[0][lane] += action[0];
    s->weights[t * s->step] = after[0];
}

/* W_t = 0 in the steps just before the first push, where products read it. */
#define sup_clear_weights NAME(sup_clear_weights)
INLINE void sup_clear_weights(const struct sup_tile *s) {
    for (int t = s->first - 1; t >= 0 && t > s->first - SUP_ROWS; t--) s->weights[t * s->step] = (vector){0};
}

/* The gradient of F_{t-1} or V_{t-1} from that of step t, in place, and of the weights of step t from both; `sums`, one
 * for each weight, are to be summed over lanes. */
#define sup_step_back NAME(sup_step_back)
INLINE void sup_step_back(const struct sup_tile *s, int t, const vector *before, vector *gradient, vector *sums) {
    const int height = sup_height(s, t - 1);
    const real *action = s->actions + (size_t)t * 3;
    const vector push = splat(action[0]), noop = splat(action[1]), pop = splat(action[2]);
    /* Two sums each, so that an addition need not wait for the last one. Where F_{t-1} ends in a pair, 0 is added. */
    vector above = {0}, at = gradient[0], of_push[2] = {{0}}, of_noop[2] = {{0}}, of_pop[2] = {{0}};
    if (s->parts > 1) {
        above = sup_above(s, gradient[height - 1], above);
        gradient[height] = sup_below(s, at);
    }
    for (int pair = 0; pair < height; pair += 2)
        UNROLL for (int part = 0; part < 2; part++) {
            const int d = pair + part;
            vector below = gradient[d + 1], weight = before[d];
            of_push[part] += weight * below;
            of_noop[part] += weight * at;
            of_pop[part] += weight * above;
            gradient[d] = push * below + noop * at + pop * above;
            above = at;
            at = below;
        }
    sums[0] += of_push[0] + of_push[1];
    sums[1] += of_noop[0] + of_noop[1];
    sums[2] += of_pop[0] + of_pop[1];
}

/* ---------------------------------------------------------------- sequences */

/* Whether the lanes are components. The sums come out differently, so that it depends on nothing but the sizes. */
#define sup_by_components NAME(sup_by_components)
INLINE int sup_by_components(int n, int m) { return n > 256 && n / 2 >= m; }

/* Parts of a column of components: cutting is worth it from four parts on, since parts have the full height always. */
#define sup_parts NAME(sup_parts)
INLINE int sup_parts(int m) {
    int parts = LANES;
    while (parts * m > LANES) parts /= 2;
    return parts < 4 ? 1 : parts;
}

/* What the passes work with; the forward pass has only the first five, and one column. */
#define sup_scratch NAME(sup_scratch)
struct sup_scratch {
    int tiles;
    real *actions, *values; /* those of a sequence in which some are not finite, with 0 in the place of these */
    vector *panel;      /* of a right factor */
    vector *weights;    /* W: [t][tile] */
    vector *columns;    /* forward one, backward those after the steps of one segment: [t - start][d] */
    vector *kept;       /* the column before each segment: [segment][d] */
    vector *gradient;   /* of one column */
    vector *of_weights; /* the gradient of W: [t][tile] */
    vector *sums;       /* those of the actions, to be summed over lanes: [t][3] */
    size_t forward_bytes, bytes;
};

#define sup_lay_out NAME(sup_lay_out)
INLINE struct sup_scratch sup_lay_out(int n, int m, char *memory) {
    struct sup_scratch a = {.tiles = sup_by_components(n, m) ? 0 : (n + LANES - 1) / LANES};
    size_t size = sup_column_size(n), used = 0;
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
#define sup_sequence NAME(sup_sequence)
struct sup_sequence {
    int length, size;
    const real *actions, *values; /* [t][3], and [t][component] */
    const real *given_actions, *given_values; /* the same with what is not finite; else NULL */
};

#define sup_copy_finite NAME(sup_copy_finite)
INLINE const real *sup_copy_finite(real *to, const real *from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = isfinite(from[i]) ? from[i] : 0;
    return to;
}

/* Sequence number `sequence` of a call. What is not finite must not reach earlier readings, in which it has the weight
 * 0, nor gradients through these: it is computed with 0 in its place, and goes to its readings in the end. */
#define sup_of_call NAME(sup_of_call)
INLINE struct sup_sequence sup_of_call(const struct sup_call *call, int64_t sequence, const struct sup_scratch *a) {
    const size_t n = call->length, m = call->size;
    const real *actions = (const real *)call->actions + sequence * n * 3;
    const real *values = (const real *)call->values + sequence * n * m;
    struct sup_sequence found = {.length = n, .size = m, .actions = actions, .values = values};
    if (are_finite(actions, n * 3) && are_finite(values, n * m)) return found;
    found.given_actions = actions;
    found.given_values = values;
    found.actions = sup_copy_finite(a->actions, actions, n * 3);
    found.values = sup_copy_finite(a->values, values, n * m);
    return found;
}

/* For a sequence in which something is not finite: makes the readings to which it comes NaN, unless they are NULL;
 * returns whether cotangents of them are not 0, unless those are NULL. */
static __attribute__((noinline)) int NAME(sup_spoil)(const struct sup_sequence *s, real *readings,
                                                     const real *cotangents) {
    int used = 0;
    for (int x = 0; x < s->size; x++) {
        int spoilt = 0;
        for (int t = 0; t < s->length; t++) {
            const real *action = s->given_actions + (size_t)t * 3;
            const size_t at = (size_t)t * s->size + x;
            spoilt |= !isfinite(action[0]) || !isfinite(action[1]) || !isfinite(action[2]);
            spoilt |= !isfinite(s->given_values[at]);
            if (spoilt && readings) readings[at] = (real)NAN;
            if (spoilt && cotangents) used |= cotangents[at] != 0;
        }
    }
    return used;
}

/* ---------------------------------------------------------------- passes */

#define sup_tile_of_times NAME(sup_tile_of_times)
INLINE struct sup_tile sup_tile_of_times(const struct sup_sequence *q, const struct sup_scratch *a, int tile) {
    return (struct sup_tile){
        .first = tile * LANES, .length = q->length, .actions = q->actions, .weights = a->weights + tile,
        .step = a->tiles, .parts = 1};
}

#define sup_tile_of_components NAME(sup_tile_of_components)
INLINE struct sup_tile sup_tile_of_components(const struct sup_sequence *q, int first, int parts) {
    const int count = q->size - first;
    return (struct sup_tile){
        .length = q->length, .actions = q->actions, .values = q->values + first, .size = q->size,
        .count = count < LANES ? count : LANES, .parts = parts};
}

/* The column before the first step. */
#define sup_begin NAME(sup_begin)
INLINE void sup_begin(const struct sup_tile *s, vector *column) {
    memset(column, 0, (s->parts > 1 ? sup_height(s, 0) + 2 : 2) * sizeof(vector));
}

#define sup_components_forward NAME(sup_components_forward)
INLINE void sup_components_forward(const struct sup_sequence *q, vector *column, real *readings) {
    const int parts = sup_parts(q->size);
    for (int x = 0; x < q->size; x += LANES) {
        const struct sup_tile s = sup_tile_of_components(q, x, parts);
        sup_begin(&s, column);
        for (int t = 0; t < s.length; t++) {
            sup_step(&s, t, column, column);
            store(readings + (size_t)t * s.size + x, column[0], s.count);
        }
    }
}

#define sup_times_forward NAME(sup_times_forward)
INLINE void sup_times_forward(const struct sup_sequence *q, const struct sup_scratch *a, real *readings) {
    for (int tile = 0; tile < a->tiles; tile++) {
        const struct sup_tile s = sup_tile_of_times(q, a, tile);
        sup_clear_weights(&s);
        sup_begin(&s, a->columns);
        for (int t = s.first; t < s.length; t++) sup_step(&s, t, a->columns, a->columns);
    }
    const struct sup_factor weights = {(real *)a->weights, a->tiles * LANES, 1, 1, 0};
    sup_product(weights, q->length, q->values, q->size, readings, a->panel);
}

static int NAME(sup_forward)(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length, m = call->size;
    const struct sup_scratch a = sup_lay_out(n, m, scratch);
    const struct sup_sequence q = sup_of_call(call, sequence, &a);
    real *readings = (real *)call->readings + sequence * n * m;
    if (sup_by_components(n, m)) sup_components_forward(&q, a.columns, readings);
    else sup_times_forward(&q, &a, readings);
    if (q.given_values) NAME(sup_spoil)(&q, readings, NULL);
    return 1;
}

/* The columns before each segment. */
#define sup_keep NAME(sup_keep)
INLINE void sup_keep(const struct sup_tile *s, const struct sup_scratch *a, int size) {
    const vector *before = a->kept;
    vector *after = a->kept;
    sup_begin(s, after);
    for (int start = s->first; start + SUP_SEGMENT < s->length; start += SUP_SEGMENT) {
        after += size;
        for (int t = start; t < start + SUP_SEGMENT; t++) {
            sup_step(s, t, before, after);
            before = after;
        }
    }
}

/* The gradient of what is pushed in step t, given that of the column after it; what the reading adds comes first. */
#define sup_push_back NAME(sup_push_back)
INLINE void sup_push_back(const struct sup_tile *s, const struct sup_scratch *a, int t, const vector *of_weights,
                          const real *cotangents, real *gradients) {
    const int lane = t - s->first;
    vector *top = a->gradient, *sums = a->sums + 3 * t;
    if (s->values) {
        const size_t at = (size_t)t * s->size;
        *top += load(cotangents + at, s->count);
        sums[0] += *top * sup_value(s, t);
        store(gradients + at, s->actions[3 * (size_t)t] * *top, s->count);
    } else {
        *top += (vector)((ivector)of_weights[t * s->step] & (lane_numbers() <= lane));
        if (lane < LANES) sums[0][lane] += (*top)[lane];
    }
}

/* What a tile gives for the gradients of the actions; and W from push times, given the gradient of W, or the gradients
 * of their values from components, given the cotangents. */
#define sup_tile_back NAME(sup_tile_back)
INLINE void sup_tile_back(const struct sup_tile *s, const struct sup_scratch *a, const vector *of_weights,
                          const real *cotangents, real *gradients) {
    const int n = s->length, size = sup_column_size(n - s->first), segments = (n - 1 - s->first) / SUP_SEGMENT;
    sup_keep(s, a, size);
    memset(a->gradient, 0, size * sizeof(vector));
    for (int segment = segments; segment >= 0; segment--) {
        const int start = s->first + segment * SUP_SEGMENT, stop = start + SUP_SEGMENT < n ? start + SUP_SEGMENT : n;
        const vector *kept = a->kept + (size_t)segment * size;
        for (int t = start; t < stop; t++) {
            vector *after = a->columns + (size_t)(t - start) * size;
            sup_step(s, t, t > start ? after - size : kept, after);
        }
        for (int t = stop - 1; t >= start; t--) {
            const int lane = t - s->first;
            const vector *before = t > start ? a->columns + (size_t)(t - 1 - start) * size : kept;
            sup_push_back(s, a, t, of_weights, cotangents, gradients);
            sup_step_back(s, t, before, a->gradient, a->sums + 3 * t);
            for (int d = 0; !s->values && lane < LANES && d < lane; d++) /* what is pushed then is not there before */
                a->gradient[d] = (vector)((ivector)a->gradient[d] & (lane_numbers() < lane));
        }
    }
}

#define sup_components_backward NAME(sup_components_backward)
INLINE void sup_components_backward(const struct sup_sequence *q, const struct sup_scratch *a, const real *cotangents,
                                    real *gradients) {
    const int parts = sup_parts(q->size);
    for (int x = 0; x < q->size; x += LANES) {
        const struct sup_tile s = sup_tile_of_components(q, x, parts);
        sup_tile_back(&s, a, NULL, cotangents + x, gradients + x);
    }
}

#define sup_times_backward NAME(sup_times_backward)
INLINE void sup_times_backward(const struct sup_sequence *q, const struct sup_scratch *a, const real *cotangents,
                               real *gradients) {
    sup_inner_products(cotangents, q->values, q->length, q->size, a->of_weights, a->tiles, a->panel);
    for (int tile = 0; tile < a->tiles; tile++) {
        const struct sup_tile s = sup_tile_of_times(q, a, tile);
        sup_clear_weights(&s);
        sup_tile_back(&s, a, a->of_weights + tile, NULL, NULL);
    }
    const struct sup_factor transposed = {(real *)a->weights, 1, a->tiles * LANES, 0, 1};
    sup_product(transposed, q->length, cotangents, q->size, gradients, a->panel);
}

static int NAME(sup_backward)(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length, m = call->size;
    const struct sup_scratch a = sup_lay_out(n, m, scratch);
    const struct sup_sequence q = sup_of_call(call, sequence, &a);
    const real *cotangents = (const real *)call->cotangents + sequence * n * m;
    real *of_actions = (real *)call->action_gradients + sequence * n * 3;
    real *of_values = (real *)call->value_gradients + sequence * n * m;
    if (q.given_values && NAME(sup_spoil)(&q, NULL, cotangents)) { /* the loss is NaN, and so is its gradient */
        for (size_t i = 0; i < (size_t)n * 3; i++) of_actions[i] = (real)NAN;
        for (size_t i = 0; i < (size_t)n * m; i++) of_values[i] = (real)NAN;
        return 1;
    }
    memset(a.sums, 0, (3 * n + LANES) * sizeof(vector));
    if (sup_by_components(n, m)) sup_components_backward(&q, &a, cotangents, of_values);
    else sup_times_backward(&q, &a, cotangents, of_values);
    for (int i = 0; i < 3 * n; i += LANES) store(of_actions + i, lane_sums(a.sums + i), 3 * n - i);
    return 1;
}

static void NAME(sup_sizes)(int n, int m, size_t sizes[2]) {
    const struct sup_scratch a = sup_lay_out(n, m, NULL);
    sizes[0] = a.forward_bytes;
    sizes[1] = a.bytes;
}
