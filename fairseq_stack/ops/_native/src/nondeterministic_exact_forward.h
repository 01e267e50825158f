/* The nondeterministic stack for every finite input: the forward pass over one sequence. */

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
    for (int row = 0; row < t; row++) {
        const struct scaled *gamma = gamma_of(s, s->gamma, row, t - 1);
        struct scaled *popped = popped_of(s, s->popped[t], row);
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
        const struct scaled *kept = gamma_of(s, s->gamma, row, k), *popped = popped_of(s, s->popped[t], k + 1);
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
    for (int row = 0; row <= t; row++) {
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
                row > t || total.m == 0 ? 0 : to_double(quotient(s->tops[row * C + y], total));
    return total;
}

/* Column t, from those before it. */
static void fill(const struct sequence *s, int t) {
    const size_t size = (size_t)s->C * s->C;
    pop(s, t);
    for (int row = 0; row < t; row++) replace_or_pop(s, t, row);
    memcpy(gamma_of(s, s->gamma, t, t), s->push + (t - 1) * size, size * sizeof(struct scaled));
}

static void start(const struct sequence *s) {
    const struct scaled one = {1, 0};
    s->gamma[0][0] = one; /* Eq. 21 */
    s->alpha[0] = one;    /* Eq. 23 */
}
