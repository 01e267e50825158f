/* The superposition stack: W of one sequence, and the gradients of its actions.
 *
 * Notation as in docs/algorithm.md: F_t(d) is the weight with which the vector that was pushed in step s is at depth d
 * after step t. Steps are counted from 0, and depth 0 is the top: W_t[s] = F_t(0). Pushed vectors do not interact, so
 * the lanes of a vector are LANES push times, a tile. A column is F_t, or its gradient, for a tile.
 */

/* The backward pass keeps the columns of so many steps, and computes those of longer sequences once more. */
#undef SUP_SEGMENT
#define SUP_SEGMENT 128

/* The push times first, first + 1, ..., of which those below `length` are steps. */
#define sup_tile NAME(sup_tile)
struct sup_tile {
    int first, length;
    const real *actions; /* push, no-op and pop of step t: [t][3] */
};

/* The depths of F_t that matter: before t there were no more pushes, and after t there are no more pops. */
#define sup_height NAME(sup_height)
INLINE int sup_height(const struct sup_tile *s, int t) {
    const int pushes = t - s->first + 1, pops = s->length - t;
    return pushes < pops ? pushes : pops;
}

/* Room for any column of the tile: a step may read two depths below those that matter. */
#define sup_column_size NAME(sup_column_size)
INLINE int sup_column_size(const struct sup_tile *s) { return (s->length - s->first + 1) / 2 + 2; }

/* Eq. 5: F_t from F_{t-1}, which may be the same column. */
#define sup_step NAME(sup_step)
INLINE void sup_step(const struct sup_tile *s, int t, const vector *before, vector *after) {
    const int height = sup_height(s, t), lane = t - s->first;
    const real *action = s->actions + (size_t)t * 3;
    const vector push = splat(action[0]), noop = splat(action[1]), pop = splat(action[2]);
    vector above = {0}, at = before[0];
    _Pragma("GCC unroll 4") for (int d = 0; d < height; d++) {
        vector below = before[d + 1];
        after[d] = push * above + noop * at + pop * below;
        above = at;
        at = below;
    }
    after[height] = after[height + 1] = (vector){0};
    if (lane < LANES) after[0][lane] += action[0];
}

/* The gradient of F_{t-1} from that of F_t, in place, and of the weights of step t from both; `sums`, one for each
 * weight, are to be summed over lanes. */
#define sup_step_back NAME(sup_step_back)
INLINE void sup_step_back(const struct sup_tile *s, int t, const vector *before, vector *gradient, vector *sums) {
    const int height = sup_height(s, t - 1);
    const real *action = s->actions + (size_t)t * 3;
    const vector push = splat(action[0]), noop = splat(action[1]), pop = splat(action[2]);
    /* Two sums each, so that an addition need not wait for the last one. Where F_{t-1} ends in a pair, 0 is added. */
    vector above = {0}, at = gradient[0], of_push[2] = {{0}}, of_noop[2] = {{0}}, of_pop[2] = {{0}};
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

/* W, [t][s], with zeros for s > t. */
static void NAME(sup_forward)(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length;
    const real *actions = (const real *)call->actions + sequence * n * 3;
    real *weights = (real *)call->weights + sequence * n * n;
    vector *column = (vector *)scratch;
    for (int first = 0; first < n; first += LANES) {
        const struct sup_tile s = {first, n, actions};
        for (int t = 0; t < first; t++) store(weights + (size_t)t * n + first, (vector){0}, n - first);
        column[0] = column[1] = (vector){0};
        for (int t = first; t < n; t++) {
            sup_step(&s, t, column, column);
            store(weights + (size_t)t * n + first, column[0], n - first);
        }
    }
}

/* What the backward pass works with. */
#define sup_adjoint NAME(sup_adjoint)
struct sup_adjoint {
    vector *kept;     /* the column before each segment: [segment][d] */
    vector *columns;  /* those after the steps of one segment: [t - start][d] */
    vector *gradient; /* of one column */
    vector *sums;     /* gradients of the actions, to be summed over lanes: [t][3] */
    size_t bytes;     /* of all arrays */
};

#define sup_lay_out_adjoint NAME(sup_lay_out_adjoint)
INLINE struct sup_adjoint sup_lay_out_adjoint(int n, char *scratch) {
    struct sup_adjoint a;
    const struct sup_tile s = {.first = 0, .length = n};
    size_t size = sup_column_size(&s), used = 0;
#define TAKE(array, count)              \
    a.array = (void *)(scratch + used); \
    used += (count) * sizeof(vector);
    TAKE(kept, (n / SUP_SEGMENT + 1) * size)
    TAKE(columns, (n < SUP_SEGMENT ? n : SUP_SEGMENT) * size)
    TAKE(gradient, size)
    TAKE(sums, (size_t)(3 * n + LANES))
#undef TAKE
    a.bytes = used;
    return a;
}

/* The columns before each segment. */
#define sup_keep NAME(sup_keep)
INLINE void sup_keep(const struct sup_tile *s, const struct sup_adjoint *a, int size) {
    const vector *before = a->kept;
    vector *after = a->kept;
    after[0] = after[1] = (vector){0};
    for (int start = s->first; start + SUP_SEGMENT < s->length; start += SUP_SEGMENT) {
        after += size;
        for (int t = start; t < start + SUP_SEGMENT; t++) {
            sup_step(s, t, before, after);
            before = after;
        }
    }
}

/* Adds what the push times of a tile give for the gradients of the actions. */
#define sup_tile_back NAME(sup_tile_back)
INLINE void sup_tile_back(const struct sup_tile *s, const struct sup_adjoint *a, const real *cotangents) {
    const int size = sup_column_size(s), n = s->length, segments = (n - s->first - 1) / SUP_SEGMENT;
    sup_keep(s, a, size);
    memset(a->gradient, 0, size * sizeof(vector));
    for (int segment = segments; segment >= 0; segment--) {
        const int start = s->first + segment * SUP_SEGMENT, stop = start + SUP_SEGMENT < n ? start + SUP_SEGMENT : n;
        const vector *kept = a->kept + (size_t)segment * size;
        for (int t = start; t < stop - 1; t++) {
            vector *after = a->columns + (size_t)(t - start) * size;
            sup_step(s, t, t > start ? after - size : kept, after);
        }
        for (int t = stop - 1; t >= start; t--) {
            const int lane = t - s->first;
            const vector *before = t > start ? a->columns + (size_t)(t - 1 - start) * size : kept;
            vector own = load(cotangents + (size_t)t * n + s->first, n - s->first);
            a->gradient[0] += (vector)((ivector)own & (lane_numbers() <= lane));
            if (lane < LANES) a->sums[3 * t][lane] += a->gradient[0][lane];
            sup_step_back(s, t, before, a->gradient, a->sums + 3 * t);
            for (int d = 0; lane < LANES && d < lane; d++) /* nothing was pushed in step t before it */
                a->gradient[d] = (vector)((ivector)a->gradient[d] & (lane_numbers() < lane));
        }
    }
}

/* The gradient of the actions, from the cotangents of W; those for s > t do not matter. */
static void NAME(sup_backward)(const void *argument, int64_t sequence, char *scratch) {
    const struct sup_call *call = argument;
    const int n = call->length;
    const struct sup_adjoint a = sup_lay_out_adjoint(n, scratch);
    const real *actions = (const real *)call->actions + sequence * n * 3;
    const real *cotangents = (const real *)call->cotangents + sequence * n * n;
    real *gradients = (real *)call->gradients + sequence * n * 3;
    memset(a.sums, 0, (3 * n + LANES) * sizeof(vector));
    for (int first = 0; first < n; first += LANES) {
        const struct sup_tile s = {first, n, actions};
        sup_tile_back(&s, &a, cotangents);
    }
    for (int i = 0; i < 3 * n; i += LANES) store(gradients + i, lane_sums(a.sums + i), 3 * n - i);
}

static void NAME(sup_sizes)(int n, size_t *forward, size_t *backward) {
    const struct sup_tile s = {.first = 0, .length = n};
    *forward = sup_column_size(&s) * sizeof(vector);
    *backward = sup_lay_out_adjoint(n, NULL).bytes;
}
