/* The stratification stack one step at a time (Section 2.1 of Hao et al., 2018), by cumulative strengths.
 *
 * H[i] is the strength of item i and of all items above it. A step takes the strength u away from all of them, puts the
 * item v_t with the strength d on top, and reads item i with the weight min(1, H[i]) - min(1, H[i + 1]).
 */

/* Item i of a sequence; the items 0..settled-1 are in one array, each of the others in its own. */
INLINE const real *strat_item(const struct strat_step_call *call, int64_t sequence, int64_t i) {
    if (i < call->settled) return (const real *)call->settled_items + (sequence * call->settled + i) * call->size;
    return (const real *)call->items[i - call->settled] + sequence * call->size;
}

INLINE real strat_readable(const real *strengths, int64_t i, int64_t count) {
    if (i == count) return 0;
    return strengths[i] > 1 ? 1 : strengths[i];
}

/* Notes in `undefined` whether a strength or a component of v_t is not finite; then nothing else counts. */
static int strat_step_forward(const void *given, int64_t sequence, char *memory) {
    const struct strat_step_call *call = given;
    const int64_t height = call->height, size = call->size;
    const real pop = ((const real *)call->pops)[sequence], push = ((const real *)call->pushes)[sequence];
    const real *before = (const real *)call->strengths + sequence * height;
    real *after = (real *)call->next + sequence * (height + 1);
    real *reading = (real *)call->readings + sequence * size;
    real rest = (pop - pop) + (push - push); /* 0, or else NaN */
    (void)memory;
    for (int64_t m = 0; m < size; m++) {
        const real component = strat_item(call, sequence, height)[m];
        rest += component - component;
        reading[m] = 0;
    }
    call->undefined[sequence] = !(rest == 0);
    for (int64_t i = 0; i < height; i++) after[i] = (before[i] > pop ? before[i] - pop : 0) + push;
    after[height] = push;
    for (int64_t i = 0; i <= height; i++) {
        const real weight = strat_readable(after, i, height + 1) - strat_readable(after, i + 1, height + 1);
        const real *item = strat_item(call, sequence, i);
        if (weight == 0) continue;
        for (int64_t m = 0; m < size; m++) reading[m] += weight * item[m];
    }
    return 1;
}

/* The derivatives of the items that autograd follows, which are the last, are those that later steps have added up. */
static int strat_step_backward(const void *given, int64_t sequence, char *memory) {
    const struct strat_step_call *call = given;
    const int64_t height = call->height, size = call->size, first = height + 1 - call->followed;
    const real *before = (const real *)call->strengths + sequence * height;
    const real *after = (const real *)call->next + sequence * (height + 1);
    const real *of_next = call->next_gradients ? (const real *)call->next_gradients + sequence * (height + 1) : NULL;
    const real *of_reading = call->reading_gradients ? (const real *)call->reading_gradients + sequence * size : NULL;
    const real pop = ((const real *)call->pops)[sequence];
    real *of_before = (real *)call->strength_gradients + sequence * height;
    real of_pop = 0, of_push = 0, of_weight_below = 0;
    (void)memory;
    for (int64_t i = 0; i <= height; i++) {
        const real weight = strat_readable(after, i, height + 1) - strat_readable(after, i + 1, height + 1);
        real of_weight = 0, gradient = of_next ? of_next[i] : 0;
        if (of_reading) {
            const real *item = strat_item(call, sequence, i);
            for (int64_t m = 0; m < size; m++) of_weight += of_reading[m] * item[m];
            if (i >= first) {
                real *to = (real *)call->derivatives + ((i - first) * call->sequences + sequence) * size;
                for (int64_t m = 0; m < size; m++) to[m] += weight * of_reading[m];
            }
        }
        if (after[i] <= 1) gradient += of_weight - of_weight_below;
        of_weight_below = of_weight;
        of_push += gradient;
        if (i == height) break;
        of_before[i] = before[i] > pop ? gradient : 0;
        of_pop -= of_before[i];
    }
    ((real *)call->pop_gradients)[sequence] = of_pop;
    ((real *)call->push_gradients)[sequence] = of_push;
    return 1;
}
