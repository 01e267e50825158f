/* The nondeterministic stack for every finite input: the passes over one sequence, with an exponent for each number.
 *
 * Notation as in nondeterministic_record.h. The rows j = i + 1 of column t are those that are remembered,
 * max(0, t - D + 1)..t.
 */

struct sequence {
    int n, Q, S, C;
    int64_t window;
    struct scaled *push, *replace, *pop;  /* D_t: [t - 1][x][..] */
    struct scaled **gamma, **popped;      /* of the columns t: [row][x][y], and gamma'[k -> t]: [row k + 1][x][r] */
    struct scaled **outer, *outer_popped; /* their derivatives; those of gamma' for one column */
    struct scaled *outer_transitions;     /* of the replacements and pops of one step */
    struct scaled *alpha, *alpha_outer;   /* [t][x] */
    struct scaled *tops;                  /* N_t for one column: [row][y] */
    double *weights, *cotangents;         /* W_t, and what the loss makes of it: [y][row], of all rows */
    double *logits;                       /* of one step, or their gradients */
    char *memory;
};

static int first_row(const struct sequence *s, int t) {
    return t - s->window + 1 > 0 ? (int)(t - s->window + 1) : 0;
}

static struct scaled *gamma_of(const struct sequence *s, struct scaled **columns, int row, int t) {
    return columns[t] + (size_t)(row - first_row(s, t)) * s->C * s->C;
}

static struct scaled *popped_of(const struct sequence *s, struct scaled *column, int row, int t) {
    return column + (size_t)(row - first_row(s, t)) * s->C * s->Q;
}

/* alpha[row - 1], where alpha[-1] is that of the beginning. */
static const struct scaled *alpha_of(const struct sequence *s, int row) {
    return s->alpha + (size_t)(row > 0 ? row - 1 : 0) * s->C;
}

/* Gives the arrays room; of the backward pass, too, if it is one. Returns 0 if there is not enough memory. */
static int begin(struct sequence *s, int is_backward) {
    const size_t n = s->n, C = s->C, Q = s->Q;
    for (int pass = 0; pass < 2; pass++) {
        char *memory = s->memory;
        size_t used = 0;
#define TAKE(array, count)                 \
    array = (void *)(pass ? memory + used : NULL); \
    used += ((count) * sizeof(*array) + 63) / 64 * 64;
        TAKE(s->push, n * C * C)
        TAKE(s->replace, n * C * C)
        TAKE(s->pop, n * C * Q)
        TAKE(s->gamma, n + 1)
        TAKE(s->popped, n + 1)
        TAKE(s->outer, n + 1)
        TAKE(s->alpha, (n + 1) * C)
        TAKE(s->alpha_outer, (n + 1) * C)
        TAKE(s->tops, (n + 1) * C)
        TAKE(s->weights, (n + 1) * C)
        TAKE(s->cotangents, (n + 1) * C)
        TAKE(s->outer_popped, (n + 1) * C * Q)
        TAKE(s->outer_transitions, C * (C + Q))
        TAKE(s->logits, C * (2 * C + Q))
        for (size_t t = 0; t <= n; t++) {
            const size_t rows = t - first_row(s, t) + 1;
            struct scaled *gamma, *popped, *outer;
            TAKE(gamma, rows * C * C)
            TAKE(popped, rows * C * Q)
            TAKE(outer, is_backward ? rows * C * C : 0)
            if (!pass) continue;
            s->gamma[t] = gamma;
            s->popped[t] = popped;
            s->outer[t] = outer;
        }
#undef TAKE
        if (pass) break;
        s->memory = malloc(used);
        if (!s->memory) return 0;
        for (size_t i = 0; i < used / sizeof(struct scaled); i++) ((struct scaled *)s->memory)[i] = ZERO;
    }
    return 1;
}

/* D_t from log weights; those that are NaN or inf become ordinary ones. Returns whether there are such. */
static int exponentiate(const struct sequence *s, int t) {
    const double *logits = s->logits;
    const int C = s->C, Q = s->Q, width = 2 * C + Q;
    double largest = -INFINITY;
    int undefined = 0;
    for (int i = 0; i < C * width; i++) {
        if (!(logits[i] < INFINITY)) undefined = 1;
        else if (logits[i] > largest) largest = logits[i];
    }
    if (largest == -INFINITY) largest = 0;
    for (int x = 0; x < C; x++)
        for (int y = 0; y < width; y++) {
            const double logit = logits[x * width + y];
            const struct scaled weight = exponential(logit < INFINITY ? logit - largest : 0);
            const size_t row = (size_t)(t - 1) * C + x;
            if (y < C) s->push[row * C + y] = weight;
            else if (y < 2 * C) s->replace[row * C + y - C] = weight;
            else s->pop[row * Q + y - 2 * C] = weight;
        }
    return undefined;
}

/* (b) (Eq. 25) for the rows of column t. */
static void pop(const struct sequence *s, int t) {
    const int C = s->C, Q = s->Q;
    const struct scaled *D = s->pop + (size_t)(t - 1) * C * Q;
    for (int row = first_row(s, t); row < t; row++) {
        const struct scaled *gamma = gamma_of(s, s->gamma, row, t - 1);
        struct scaled *popped = popped_of(s, s->popped[t], row, t);
        for (int x = 0; x < C; x++)
            for (int r = 0; r < Q; r++) {
                struct scaled sum = ZERO;
                for (int w = 0; w < C; w++) add_product(&sum, gamma[x * C + w], D[w * Q + r]);
                popped[x * Q + r] = normal(sum);
            }
    }
}

/* (a) (Eq. 24), replace and pop, for a row of column t. */
static void replace_or_pop(const struct sequence *s, int t, int row) {
    const int C = s->C, Q = s->Q, S = s->S;
    const struct scaled *D = s->replace + (size_t)(t - 1) * C * C, *before = gamma_of(s, s->gamma, row, t - 1);
    struct scaled *gamma = gamma_of(s, s->gamma, row, t);
    for (int x = 0; x < C; x++)
        for (int w = 0; w < C; w++)
            for (int y = 0; y < C; y++) add_product(&gamma[x * C + y], before[x * C + w], D[w * C + y]);
    for (int k = row; k < t - 1; k++) {
        const struct scaled *kept = gamma_of(s, s->gamma, row, k), *popped = popped_of(s, s->popped[t], k + 1, t);
        for (int x = 0; x < C; x++)
            for (int us = 0; us < C; us++)
                for (int r = 0; r < Q; r++)
                    add_product(&gamma[x * C + r * S + us % S], kept[x * C + us], popped[us * Q + r]);
    }
    for (int i = 0; i < C * C; i++) gamma[i] = normal(gamma[i]);
}

/* (c) and (d): N_t, alpha[t] and W_t; returns Z_t. */
static struct scaled read(const struct sequence *s, int t) {
    const int C = s->C;
    struct scaled total = ZERO, *alpha = s->alpha + (size_t)t * C;
    for (int y = 0; y < C; y++) alpha[y] = ZERO;
    for (int row = first_row(s, t); row <= t; row++) {
        const struct scaled *gamma = gamma_of(s, s->gamma, row, t), *below = alpha_of(s, row);
        for (int y = 0; y < C; y++) {
            struct scaled sum = ZERO;
            for (int x = 0; x < C; x++) add_product(&sum, below[x], gamma[x * C + y]);
            s->tops[row * C + y] = sum = normal(sum);
            add(&alpha[y], sum.m, sum.e);
        }
    }
    for (int y = 0; y < C; y++) {
        alpha[y] = normal(alpha[y]);
        add(&total, alpha[y].m, alpha[y].e);
    }
    total = normal(total);
    for (int row = 0; row <= s->n; row++)
        for (int y = 0; y < C; y++)
            s->weights[y * (s->n + 1) + row] =
                row < first_row(s, t) || row > t || total.m == 0 ? 0 : to_double(quotient(s->tops[row * C + y], total));
    return total;
}

/* Column t, from those before it. */
static void fill(const struct sequence *s, int t) {
    const size_t size = (size_t)s->C * s->C;
    pop(s, t);
    for (int row = first_row(s, t); row < t; row++) replace_or_pop(s, t, row);
    memcpy(gamma_of(s, s->gamma, t, t), s->push + (t - 1) * size, size * sizeof(struct scaled));
}

static void start(const struct sequence *s) {
    const struct scaled one = {1, 0};
    s->gamma[0][0] = one; /* Eq. 21 */
    s->alpha[0] = one;    /* Eq. 23 */
}
