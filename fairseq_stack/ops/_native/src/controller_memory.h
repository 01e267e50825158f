/* The memory of a controller, for one sequence: a stack or a queue by cumulative strengths, and the input buffer (Section
 * 8.2 of docs/algorithm.md). Only in double.
 */

/* Item i is what step i + 1 pushed. A stack is read from its last item on, a queue from its first. */
struct ctrl_memory {
    int is_queue;
    size_t size;     /* m */
    real *items;     /* (T, m), with 0 for what is not finite */
    real *strengths; /* after each step: of an item and of all items that are read before it; t of them after step t */
    /* working memory: */
    real *marks;     /* added to all further readings: NaN for the components of what was not finite, else 0, (m) */
    real *of_items;  /* gradients of the items, (T, m), and of the strengths after a step, (T) */
    real *of_strengths;
};

/* The strengths after step t. */
INLINE real *ctrl_strengths(const struct ctrl_memory *memory, size_t t) {
    return memory->strengths + (t > 0 ? t * (t - 1) / 2 : 0);
}

/* The item that is in place p of those that are read after step t. */
INLINE size_t ctrl_place(const struct ctrl_memory *memory, size_t t, size_t p) {
    return memory->is_queue ? p : t - 1 - p;
}

INLINE real ctrl_finite(real x) { return x - x == 0 ? x : 0; }

/* r_t, with the weight min(1, H) - min(1, H before) of each item. */
INLINE void ctrl_read(const struct ctrl_memory *memory, size_t t, real *reading) {
    const real *strengths = ctrl_strengths(memory, t);
    real before = 0;
    memcpy(reading, memory->marks, memory->size * sizeof(real));
    for (size_t p = 0; p < t && before < 1; p++) {
        const size_t i = ctrl_place(memory, t, p);
        const real weight = (strengths[i] > 1 ? 1 : strengths[i]) - before;
        const real *item = memory->items + i * memory->size;
        before = strengths[i];
        if (weight == 0) continue;
        for (size_t j = 0; j < memory->size; j++) reading[j] += weight * item[j];
    }
}

/* Pops, pushes and reads. */
static void ctrl_step(const struct ctrl_memory *memory, size_t t, real pop, real push, const real *value, real *reading) {
    const real *before = ctrl_strengths(memory, t - 1), mark = (pop - pop) + (push - push);
    real *after = ctrl_strengths(memory, t), *item = memory->items + (t - 1) * memory->size;
    for (size_t j = 0; j < memory->size; j++) {
        item[j] = ctrl_finite(value[j]);
        memory->marks[j] += mark + (value[j] - value[j]);
    }
    pop = ctrl_finite(pop);
    push = ctrl_finite(push);
    const real added = memory->is_queue ? 0 : push;
    for (size_t i = 0; i + 1 < t; i++) after[i] = (before[i] > pop ? before[i] - pop : 0) + added;
    after[t - 1] = push + (memory->is_queue && t > 1 ? after[t - 2] : 0);
    ctrl_read(memory, t, reading);
}

/* Adds what a reading owes to the gradients of the items and of the strengths after step t. */
INLINE void ctrl_read_back(const struct ctrl_memory *memory, size_t t, const real *of_reading) {
    const real *strengths = ctrl_strengths(memory, t);
    real before = 0;
    for (size_t p = 0; p < t && before <= 1; p++) {
        const size_t i = ctrl_place(memory, t, p);
        const real weight = (strengths[i] > 1 ? 1 : strengths[i]) - before, *item = memory->items + i * memory->size;
        real *of_item = memory->of_items + i * memory->size, of_weight = 0;
        for (size_t j = 0; j < memory->size; j++) {
            of_weight += of_reading[j] * item[j];
            of_item[j] += weight * of_reading[j];
        }
        if (strengths[i] <= 1) memory->of_strengths[i] += of_weight;
        if (p > 0) memory->of_strengths[ctrl_place(memory, t, p - 1)] -= of_weight;
        before = strengths[i];
    }
}

/* The derivatives of step t: `of_strengths` has the gradient of the strengths after it that later steps have added up, and
 * gets the gradient of those before it. */
static void ctrl_step_back(const struct ctrl_memory *memory, size_t t, real pop, const real *of_reading, real *of_pop,
                           real *of_push) {
    const real *before = ctrl_strengths(memory, t - 1);
    real *gradient = memory->of_strengths, popped = 0, pushed = 0;
    ctrl_read_back(memory, t, of_reading);
    pop = ctrl_finite(pop);
    pushed = gradient[t - 1];
    if (memory->is_queue && t > 1) gradient[t - 2] += pushed;
    for (size_t i = 0; i + 1 < t; i++) {
        if (!memory->is_queue) pushed += gradient[i];
        gradient[i] = before[i] > pop ? gradient[i] : 0;
        popped += gradient[i];
    }
    *of_pop = -popped;
    *of_push = pushed;
}

/* ---------------------------------------------------------------- input buffer */

/* x_t from items (n, k), between the items before and after the position; zeros lie past the end. */
static void ctrl_look_up(const real *items, size_t n, size_t k, real position, real *x) {
    const size_t place = position < n ? (size_t)position : n;
    const real share = position < n ? position - place : position - position;
    for (size_t j = 0; j < k; j++) {
        const real here = place < n ? items[place * k + j] : 0;
        const real there = share > 0 && place + 1 < n ? items[(place + 1) * k + j] : 0;
        x[j] = (1 - share) * here + share * there + (here - here) + (there - there);
    }
}

/* Adds what x_t owes to the gradients of the items; returns the gradient of the position. */
static real ctrl_look_up_back(const real *items, size_t n, size_t k, real position, const real *of_x, real *of_items) {
    if (!(position < n)) return 0;
    const size_t place = (size_t)position;
    const real share = position - place;
    real of_position = 0;
    for (size_t j = 0; j < k; j++) {
        of_items[place * k + j] += (1 - share) * of_x[j];
        of_position -= ctrl_finite(items[place * k + j]) * of_x[j];
        if (place + 1 == n) continue;
        of_items[(place + 1) * k + j] += share * of_x[j];
        of_position += ctrl_finite(items[(place + 1) * k + j]) * of_x[j];
    }
    return of_position;
}
