/* The two products that all the arithmetic of the nondeterministic stack is made of: add_products for (b), (e) and O of
 * (m), and add_dots for P of (m) and the sums of (l), all in docs/algorithm.md.
 *
 * Both run over some matrices of vectors; row u of one begins at its vector u * columns. The matrices are scaled by
 * vectors of factors f[k * f_step]. The sizes `rows` and `columns` are constants where they are called with
 * constants; tiles of the sums are kept in registers.
 */

/* A tile of as many sums as fit the registers: AVX-512 has 32 of them, the others 16. */
#define TILE_ROWS 3
#if VECTOR_BYTES == 64
#define TILE_COLUMNS 9
#define TILES(tile_rows) TILE(tile_rows, 9) TILE(tile_rows, 6) TILE(tile_rows, 3) TILE(tile_rows, 1)
#else
#define TILE_COLUMNS 3
#define TILES(tile_rows) TILE(tile_rows, 3) TILE(tile_rows, 1)
#endif

/* Coefficients: that of matrix k, its row u and the row r of the sums is c[k * k_step + u * u_step + r * r_step]. */
struct coefficients {
    const real *c;
    ptrdiff_t k_step, u_step, r_step;
};

struct matrices {
    const vector *first; /* matrix k is at first + k * step, */
    const vector *const *list; /* or, unless this is NULL, at list[k] + step */
    ptrdiff_t step;
    const vector *f;
    ptrdiff_t f_step;
    int count;
};

INLINE struct matrices consecutive(const vector *first, ptrdiff_t step, const vector *f, ptrdiff_t f_step, int count) {
    return (struct matrices){first, NULL, step, f, f_step, count};
}

INLINE struct matrices listed(const vector *const *list, ptrdiff_t offset, const vector *f, ptrdiff_t f_step,
                              int count) {
    return (struct matrices){NULL, list, offset, f, f_step, count};
}

INLINE const vector *matrix(struct matrices m, int k) {
    return m.list ? m.list[k] + m.step : m.first + k * m.step;
}

/* sums[r, x] = sums[r, x] * scale + sum_{k, u} a[k][u, x] f[k] c[k, u, r] for r and x in the tile at `sums`, which
 * begins at this column. */
INLINE void add_products_tile(int tile_rows, int tile_columns, int column, int depth, int columns, vector *sums,
                              vector scale, struct matrices m, struct coefficients c) {
    vector tile[TILE_ROWS][TILE_COLUMNS];
    UNROLL for (int r = 0; r < tile_rows; r++)
        UNROLL for (int x = 0; x < tile_columns; x++) tile[r][x] = sums[r * columns + x] * scale;
    for (int k = 0; k < m.count; k++) {
        const vector *a = matrix(m, k) + column, f = m.f[k * m.f_step];
        const real *from = c.c + k * c.k_step;
        for (int u = 0; u < depth; u++) {
            vector factor[TILE_ROWS];
            UNROLL for (int r = 0; r < tile_rows; r++) factor[r] = f * from[u * c.u_step + r * c.r_step];
            UNROLL for (int x = 0; x < tile_columns; x++) {
                vector element = a[u * columns + x];
                IN_REGISTER(element);
                UNROLL for (int r = 0; r < tile_rows; r++) tile[r][x] += element * factor[r];
            }
        }
    }
    UNROLL for (int r = 0; r < tile_rows; r++)
        UNROLL for (int x = 0; x < tile_columns; x++) sums[r * columns + x] = tile[r][x];
}

/* The same for all of `sums`, of rows x columns vectors; the matrices have `depth` rows. */
INLINE void add_products(int rows, int columns, int depth, vector *sums, vector scale, struct matrices m,
                         struct coefficients c) {
    for (int r = 0; r < rows; r += TILE_ROWS) {
        struct coefficients from = c;
        from.c += r * c.r_step;
        int x = 0;
#define TILE(tile_rows, tile_columns)                      \
    for (; x + tile_columns <= columns; x += tile_columns) \
        add_products_tile(tile_rows, tile_columns, x, depth, columns, sums + r * columns + x, scale, m, from);
        if (rows - r >= 3) { TILES(3) }
        else if (rows - r == 2) { TILES(2) }
        else { TILES(1) }
#undef TILE
    }
}

/* sums[k][u, r] += f[k] sum_x a[k][u, x] b[r, x], where row r of b is at b + r * columns. */
INLINE void add_dots_tile(int tile_depth, int tile_rows, int row, int rows, int columns, vector *sums,
                          ptrdiff_t sums_step, struct matrices m, const vector *b) {
    for (int k = 0; k < m.count; k++) {
        const vector *a = matrix(m, k) + row * columns, f = m.f[k * m.f_step];
        vector tile[TILE_ROWS][TILE_ROWS] = {{{0}}};
        for (int x = 0; x < columns; x++) {
            vector factor[TILE_ROWS];
            UNROLL for (int r = 0; r < tile_rows; r++) {
                factor[r] = b[r * columns + x];
                IN_REGISTER(factor[r]);
            }
            UNROLL for (int u = 0; u < tile_depth; u++) {
                vector element = a[u * columns + x];
                IN_REGISTER(element);
                UNROLL for (int r = 0; r < tile_rows; r++) tile[u][r] += element * factor[r];
            }
        }
        vector *to = sums + k * sums_step;
        UNROLL for (int u = 0; u < tile_depth; u++)
            UNROLL for (int r = 0; r < tile_rows; r++) to[u * rows + r] += f * tile[u][r];
    }
}

INLINE void add_dots(int rows, int columns, int depth, vector *sums, ptrdiff_t sums_step, struct matrices m,
                     const vector *b) {
    for (int u = 0; u < depth; u += TILE_ROWS) {
        for (int r = 0; r < rows; r += TILE_ROWS) {
            vector *to = sums + u * rows + r;
            const vector *from = b + r * columns;
#define TILE(d, n) \
    if ((depth - u >= 3 ? 3 : depth - u) == d && (rows - r >= 3 ? 3 : rows - r) == n) \
        add_dots_tile(d, n, u, rows, columns, to, sums_step, m, from);
            TILE(1, 1) TILE(1, 2) TILE(1, 3) TILE(2, 1) TILE(2, 2) TILE(2, 3) TILE(3, 1) TILE(3, 2) TILE(3, 3)
#undef TILE
        }
    }
}
