/* The superposition stack: columns of weights or of elements, and the steps between them.
 *
 * Notation as in docs/algorithm.md: F_t(d) is the weight with which the vector that was pushed in step i is at depth d
 * after step t. Steps are counted from 0, and depth 0 is the top: W_t[i] = F_t(0), and the readings are W V. Pushed
 * vectors do not interact, so the lanes are LANES push times, a tile. A column is F_t, or its gradient, for a tile.
 * W and its gradient are matrices of vectors, [t][tile]. That takes O(n^3 + n^2 m) operations.
 *
 * Long sequences of short vectors take O(n^2 m) operations instead: components do not interact either, so the lanes are
 * components of the vectors, and a column is V_t, or its gradient, for a tile of them. Stacks that hold only D elements
 * take O(n D m) operations in the same way, and memory that is linear in n.
 *
 * Nothing is kept for the backward pass.
 */

/* A tile of push times, first, first + 1, ..., of which those below `length` are steps; or, if it has values, of
 * components: then `first` is 0. */
struct sup_tile {
    int first, length;
    const real *actions; /* push, no-op and pop of step t: [t][3] */
    vector *weights;     /* W_t is at weights[t * step], and where the gradient of W is, that of W_t likewise */
    ptrdiff_t step;
    const real *values; /* components of v_t are at values + t * size; other arrays likewise */
    int size, count;    /* `count` of them are in the tile */
    int limit;          /* how many elements V_t has at most */
};

/* How many depths of F_t or V_t matter: as many as vectors have been pushed, as can still come to the top, and as the
 * limit allows. */
INLINE int sup_height(const struct sup_tile *tile, int t) {
    const int pushes = t - tile->first + 1, pops = tile->length - t, height = pushes < pops ? pushes : pops;
    return height < tile->limit ? height : tile->limit;
}

/* Room for any column of the tile: a step reads up to two depths below those that matter. */
INLINE int sup_column_size(int length, int limit) { return (limit < (length + 1) / 2 ? limit : (length + 1) / 2) + 2; }

INLINE vector sup_value(const struct sup_tile *tile, int t) {
    return load(tile->values + (size_t)t * tile->size, tile->count);
}

/* The recursion of Section 8 of docs/algorithm.md for F_t, or Eq. 5 for V_t: from that of the step before, which may be
 * the same column. */
INLINE void sup_step(const struct sup_tile *tile, int t, const vector *before, vector *after) {
    const int height = sup_height(tile, t), lane = t - tile->first;
    const real *action = tile->actions + (size_t)t * 3;
    const vector push = splat(action[0]), noop = splat(action[1]), pop = splat(action[2]);
    vector above = {0}, at = before[0];
    if (tile->values) above = sup_value(tile, t);
    _Pragma("GCC unroll 4") for (int d = 0; d < height; d++) {
        vector below = before[d + 1];
        after[d] = push * above + noop * at + pop * below;
        above = at;
        at = below;
    }
    after[height] = after[height + 1] = (vector){0};
    if (tile->values) return;
    if (lane < LANES) after[0][lane] += action[0];
    tile->weights[t * tile->step] = after[0];
}

/* W_t = 0 in the steps just before the first push, where products read it. */
INLINE void sup_clear_weights(const struct sup_tile *tile) {
    for (int t = tile->first - 1; t >= 0 && t > tile->first - SUP_ROWS; t--)
        tile->weights[t * tile->step] = (vector){0};
}

/* The transposed recursion: the gradient of F_{t-1} or V_{t-1} from that of step t, in place, and of the weights of
 * step t from both; `sums`, one for each weight, are to be summed over lanes. */
INLINE void sup_step_back(const struct sup_tile *tile, int t, const vector *before, vector *gradient, vector *sums) {
    const int height = sup_height(tile, t - 1);
    const real *action = tile->actions + (size_t)t * 3;
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
    if (height == tile->limit) gradient[height] = (vector){0}; /* it was lost, whatever the last pair left here */
}
