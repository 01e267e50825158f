/* The memory of a controller, for one sequence: a stack or a queue by cumulative strengths (Section 8.2 of
 * docs/algorithm.md).
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
    size_t bytes, scratch_bytes;
};

/* Lays out room for T steps in the record and in the working memory. */
static struct ctrl_memory ctrl_lay_out_memory(int is_queue, size_t T, size_t size, char *record, char *scratch) {
    struct ctrl_memory s = {.is_queue = is_queue, .size = size};
    char *memory = record;
    size_t used = 0;
    TAKE(s.items, T * size)
    TAKE(s.strengths, T * (T + 1) / 2)
    s.bytes = used;
    memory = scratch;
    used = 0;
    TAKE(s.marks, size)
    TAKE(s.of_items, T * size)
    TAKE(s.of_strengths, T)
    s.scratch_bytes = used;
    return s;
}

/* Before the first step. */
INLINE void ctrl_begin_memory(const struct ctrl_memory *memory) { memset(memory->marks, 0, memory->size * sizeof(real)); }

/* Before the last of T steps, on the way back. */
INLINE void ctrl_begin_memory_back(const struct ctrl_memory *memory, size_t T) {
    memset(memory->of_items, 0, T * memory->size * sizeof(real));
    memset(memory->of_strengths, 0, T * sizeof(real));
}

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
