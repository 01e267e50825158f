/* An LSTM with stacks, all steps of a sequence one after the other: products of vectors and matrices.
 *
 * A few sequences advance together, so that a number of a weight matrix that has been read serves all of them. The sums
 * of a sequence are added up in the same order whatever the others are.
 */

/* The most sequences that advance together. */
#undef MOST_TOGETHER
#define MOST_TOGETHER 4

/* Vectors of sums for each of them that the registers hold: AVX-512 has 32 registers, the others 16. */
#undef WIDEST_TILE
#define WIDEST_TILE(count) ((VECTOR_BYTES == 64 ? 16 : 8) / ((count) == 3 ? 4 : (count)) > 8 ? 8 : \
                            (VECTOR_BYTES == 64 ? 16 : 8) / ((count) == 3 ? 4 : (count)))

/* to[s] = from[s] + x[s] M for each sequence s; NULL stands for zeros, and no `to` may be a `from`. */
#define rnn_product NAME(rnn_product)
struct rnn_product {
    int rows, columns;
    const real *matrix; /* M, (rows, columns) */
    const real *from[MOST_TOGETHER], *x[MOST_TOGETHER];
    real *to[MOST_TOGETHER];
};

/* The sums of `vectors` vectors from this column on; `lanes` of a vector are in M. */
#define rnn_multiply_tile NAME(rnn_multiply_tile)
INLINE void rnn_multiply_tile(int count, int vectors, int lanes, const struct rnn_product *p, int column) {
    const int columns = p->columns;
    vector sums[MOST_TOGETHER][8];
    UNROLL for (int s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vectors; v++)
            sums[s][v] = p->from[s] ? load(p->from[s] + column + v * LANES, lanes) : (vector){0};
    const real *row = p->matrix + column;
    for (int k = 0; k < p->rows; k++, row += columns) {
        vector factor[MOST_TOGETHER];
        UNROLL for (int s = 0; s < count; s++) factor[s] = splat(p->x[s][k]);
        UNROLL for (int v = 0; v < vectors; v++) {
            vector element = load(row + v * LANES, lanes);
            IN_REGISTER(element);
            UNROLL for (int s = 0; s < count; s++) sums[s][v] += element * factor[s];
        }
    }
    UNROLL for (int s = 0; s < count; s++)
        UNROLL for (int v = 0; v < vectors; v++) store(p->to[s] + column + v * LANES, sums[s][v], lanes);
}

/* The last tile of columns overlaps the one before it. */
#define rnn_multiply_together NAME(rnn_multiply_together)
INLINE void rnn_multiply_together(int count, const struct rnn_product *p) {
    const int columns = p->columns;
    int column = 0;
    while (column < columns) {
        int vectors = WIDEST_TILE(count);
        while (vectors > 1 && (vectors / 2 * LANES >= columns - column || vectors * LANES > columns)) vectors /= 2;
        if (column + vectors * LANES > columns) column = columns > vectors * LANES ? columns - vectors * LANES : 0;
        if (vectors == 8 && WIDEST_TILE(count) >= 8) rnn_multiply_tile(count, 8, LANES, p, column);
        else if (vectors == 4 && WIDEST_TILE(count) >= 4) rnn_multiply_tile(count, 4, LANES, p, column);
        else if (vectors == 2) rnn_multiply_tile(count, 2, LANES, p, column);
        else rnn_multiply_tile(count, 1, columns < LANES ? columns : LANES, p, column);
        column += vectors * LANES;
    }
}

#define rnn_multiply NAME(rnn_multiply)
static __attribute__((noinline)) void rnn_multiply(int count, const struct rnn_product *p) {
    if (count == 1) rnn_multiply_together(1, p);
    else if (count == 2) rnn_multiply_together(2, p);
    else if (count == 3) rnn_multiply_together(3, p);
    else rnn_multiply_together(4, p);
}
