/* The input buffer of a controller, for one sequence (Section 8.2 of docs/algorithm.md). */

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
