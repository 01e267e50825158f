/* An LSTM with stacks, all steps of a sequence one after the other: products of vectors and matrices.
 *
 * Some sequences advance together, so that a number of a weight matrix that has been read serves all of them. The sums
 * of a sequence are added up in the same order whatever the others are.
 */

/* The most sequences that advance together, and of these the most whose sums are in registers at the same time. */
#define MOST_TOGETHER 16
#define MOST_IN_REGISTERS 4

/* to[s] = from[s] + x[s] M for each sequence s; NULL stands for zeros, and no `to` may be a `from`. */
struct rnn_product {
    int rows, columns;
    const real *matrix; /* M, (rows, columns) */
    const real *from[MOST_TOGETHER], *x[MOST_TOGETHER];
    real *to[MOST_TOGETHER];
};

/* The sums of `count` sequences from this one on, in `vectors` vectors from this column on, of which `lanes` are in M.
 */
INLINE void rnn_multiply_tile(int count, int vectors, int lanes, const struct rnn_product *p, int first, int column) {
    const int columns = p->columns;
    vector sums[MOST_IN_REGISTERS][8];
    UNROLL for (int s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vectors; v++)
            sums[s][v] = p->from[first + s] ? load(p->from[first + s] + column + v * LANES, lanes) : (vector){0};
    const real *row = p->matrix + column;
    for (int k = 0; k < p->rows; k++, row += columns) {
        vector factor[MOST_IN_REGISTERS];
        UNROLL for (int s = 0; s < count; s++) factor[s] = splat(p->x[first + s][k]);
        UNROLL for (int v = 0; v < vectors; v++) {
            vector element = load(row + v * LANES, lanes);
            IN_REGISTER(element);
            UNROLL for (int s = 0; s < count; s++) sums[s][v] += element * factor[s];
        }
    }
    UNROLL for (int s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vectors; v++) store(p->to[first + s] + column + v * LANES, sums[s][v], lanes);
}

/* The same with constant sizes. */
INLINE void rnn_multiply_some(int count, int vectors, const struct rnn_product *p, int first, int column) {
    if (count == 1 && vectors == 8) rnn_multiply_tile(count, 8, LANES, p, first, column);
    else if (vectors == 4) rnn_multiply_tile(count, 4, LANES, p, first, column);
    else if (vectors == 2) rnn_multiply_tile(count, 2, LANES, p, first, column);
    else rnn_multiply_tile(count, 1, p->columns < LANES ? p->columns : LANES, p, first, column);
}

/* A tile of columns serves all sequences while it is in the caches; the last tile overlaps the one before it. */
static __attribute__((noinline)) void rnn_multiply(int count, const struct rnn_product *p) {
    const int columns = p->columns, most = count == 1 ? 8 : VECTOR_BYTES == 64 ? 4 : 2;
    int column = 0;
    while (column < columns) {
        int vectors = most;
        while (vectors > 1 && (vectors / 2 * LANES >= columns - column || vectors * LANES > columns)) vectors /= 2;
        if (column + vectors * LANES > columns) column = columns > vectors * LANES ? columns - vectors * LANES : 0;
        for (int first = 0; first < count; first += MOST_IN_REGISTERS) {
            const int rest = count - first;
            if (rest == 1) rnn_multiply_some(1, vectors, p, first, column);
            else if (rest == 2) rnn_multiply_some(2, vectors, p, first, column);
            else if (rest == 3) rnn_multiply_some(3, vectors, p, first, column);
            else rnn_multiply_some(4, vectors, p, first, column);
        }
        column += vectors * LANES;
    }
}
