/* The nondeterministic stack for every finite input, backward: the derivatives of nondeterministic_exact_forward.h. */

/* The derivatives of Z_t-normalised tops, (h), of alpha and of gamma through them; after `read` of the same step. */
static void read_back(const struct sequence *s, int t, struct scaled total) {
    const int C = s->C, columns = s->n + 1;
    int star = 0;
    double mean = 0;
    for (int i = 1; i < C * columns; i++)
        if (s->weights[i] > s->weights[star]) star = i;
    const double centre = s->cotangents[star];
    for (int i = 0; i < C * columns; i++) mean += s->weights[i] * (s->cotangents[i] - centre);
    for (int row = 0; row <= t; row++) {
        const struct scaled *gamma = gamma_of(s, s->gamma, row, t), *below = alpha_of(s, row);
        struct scaled *outer = gamma_of(s, s->outer, row, t);
        for (int y = 0; y < C; y++) {
            struct scaled top = s->alpha_outer[(size_t)t * C + y];
            if (total.m != 0) {
                const double own = s->cotangents[y * columns + row] - centre - mean;
                const struct scaled share = quotient(of_double(own), total);
                add(&top, share.m, share.e);
            }
            top = normal(top);
            for (int x = 0; x < C; x++) {
                add_product(&outer[x * C + y], below[x], top);
                if (row > 1) add_product(&s->alpha_outer[(size_t)(row - 1) * C + x], gamma[x * C + y], top);
            }
        }
    }
}

/* The derivatives of the replacements and pops of step t, and through them of earlier columns, by a row of column t. */
static void replace_or_pop_back(const struct sequence *s, int t, int row, struct scaled *replaced) {
    const int C = s->C, Q = s->Q, S = s->S;
    const struct scaled *D = s->replace + (size_t)(t - 1) * C * C, *before = gamma_of(s, s->gamma, row, t - 1);
    const struct scaled *outer = gamma_of(s, s->outer, row, t);
    struct scaled *outer_before = gamma_of(s, s->outer, row, t - 1);
    for (int x = 0; x < C; x++)
        for (int w = 0; w < C; w++)
            for (int y = 0; y < C; y++) {
                add_product(&outer_before[x * C + w], outer[x * C + y], D[w * C + y]);
                add_product(&replaced[w * C + y], before[x * C + w], outer[x * C + y]);
            }
    for (int k = row; k < t - 1; k++) {
        const struct scaled *kept = gamma_of(s, s->gamma, row, k), *popped = popped_of(s, s->popped[t], k + 1);
        struct scaled *outer_kept = gamma_of(s, s->outer, row, k);
        struct scaled *outer_popped = popped_of(s, s->outer_popped, k + 1);
        for (int x = 0; x < C; x++)
            for (int us = 0; us < C; us++)
                for (int r = 0; r < Q; r++) {
                    add_product(&outer_kept[x * C + us], outer[x * C + r * S + us % S], popped[us * Q + r]);
                    add_product(&outer_popped[us * Q + r], kept[x * C + us], outer[x * C + r * S + us % S]);
                }
    }
}

/* The same for gamma' of a row, when all rows have added to its derivative. */
static void pop_back(const struct sequence *s, int t, int row, struct scaled *popped) {
    const int C = s->C, Q = s->Q;
    const struct scaled *D = s->pop + (size_t)(t - 1) * C * Q, *gamma = gamma_of(s, s->gamma, row, t - 1);
    const struct scaled *outer = popped_of(s, s->outer_popped, row);
    struct scaled *outer_before = gamma_of(s, s->outer, row, t - 1);
    for (int x = 0; x < C; x++)
        for (int r = 0; r < Q; r++)
            for (int w = 0; w < C; w++) {
                add_product(&outer_before[x * C + w], outer[x * Q + r], D[w * Q + r]);
                add_product(&popped[w * Q + r], gamma[x * C + w], outer[x * Q + r]);
            }
}

static void normalise(struct scaled *x, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] = normal(x[i]);
}

/* The gradients of the log weights of step t, (C, 2 C + Q), when all later steps are done. */
static void fill_back(const struct sequence *s, int t) {
    double *gradients = s->logits;
    const size_t C = s->C, Q = s->Q, width = 2 * C + Q, first = (size_t)(t - 1) * C, rows = t + 1;
    struct scaled *replaced = s->outer_transitions, *popped = replaced + C * C;
    const struct scaled *pushed = gamma_of(s, s->outer, t, t);
    for (size_t i = 0; i < C * (C + Q); i++) replaced[i] = ZERO;
    for (size_t i = 0; i < rows * C * Q; i++) s->outer_popped[i] = ZERO;
    normalise(s->outer[t], rows * C * C);
    for (int row = 0; row < t; row++) replace_or_pop_back(s, t, row, replaced);
    normalise(s->outer_popped, rows * C * Q);
    for (int row = 0; row < t; row++) pop_back(s, t, row, popped);
    for (size_t x = 0; x < C; x++) {
        for (size_t y = 0; y < C; y++) {
            gradients[x * width + y] = to_double(product(s->push[(first + x) * C + y], pushed[x * C + y]));
            gradients[x * width + C + y] = to_double(product(s->replace[(first + x) * C + y], replaced[x * C + y]));
        }
        for (size_t r = 0; r < Q; r++)
            gradients[x * width + 2 * C + r] = to_double(product(s->pop[(first + x) * Q + r], popped[x * Q + r]));
    }
}
