/* The nondeterministic stack for every finite input: the arrays of one sequence, with an exponent for each number.
 *
 * Notation as in nondeterministic_record.h. The rows j = i + 1 of column t are 0..t.
 */

struct sequence {
    int n, Q, S, C;
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

static struct scaled *gamma_of(const struct sequence *s, struct scaled **columns, int row, int t) {
    return columns[t] + (size_t)row * s->C * s->C;
}

static struct scaled *popped_of(const struct sequence *s, struct scaled *column, int row) {
    return column + (size_t)row * s->C * s->Q;
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
            const size_t rows = t + 1;
            struct scaled *gamma, *popped, *outer;
            TAKE(gamma, rows * C * C)
            TAKE(popped, rows * C * Q)
            TAKE(outer, is_backward ? rows * C * C : 0)
            if (!pass) continue;
            s->gamma[t] = gamma;
            s->popped[t] = popped;
            s->outer[t] = outer;
        }
        if (pass) break;
        s->memory = malloc(used);
        if (!s->memory) return 0;
        for (size_t i = 0; i < used / sizeof(struct scaled); i++) ((struct scaled *)s->memory)[i] = ZERO;
    }
    return 1;
}
