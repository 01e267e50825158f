/* The superposition stack: the matrix products in W V and in its gradients. */

/* A tile of a product is kept in registers: AVX-512 has 32 of them, the others 16. */
#if VECTOR_BYTES == 64
#define SUP_ROWS 6
#define SUP_COLUMNS 4
#else
#define SUP_ROWS 4
#define SUP_COLUMNS 3
#endif

/* The left factor: its number in row r and column k is at[r * row_step + k * step]. */
struct sup_factor {
    const real *at;
    ptrdiff_t row_step, step;
    int is_lower, is_upper; /* 0 where k > r, or where k < r; only k < r + SUP_ROWS, or k >= r, are looked at */
};

/* A panel is as many columns of the right factor as a tile has: [k][x]. */
INLINE int sup_panel_columns(int width) {
    return width > (SUP_COLUMNS - 1) * LANES ? SUP_COLUMNS : width > LANES ? 2 : 1;
}

/* This many products are added up at a time, and then the sums: rounding errors grow with the number of additions. */
#define SUP_BLOCK 64

/* The product for a tile, of which `width` numbers a row are wanted. W is largest next to its diagonal, and what is
 * large is added last. */
INLINE void sup_product_tile(int rows, int columns, struct sup_factor left, int row, int depth, const vector *panel,
                             real *out, ptrdiff_t out_step, int width) {
    const int begin = left.is_upper ? row : 0;
    const int end = left.is_lower && row + rows < depth ? row + rows : depth;
    const int forward = left.is_upper ? -1 : 1;
    int k = left.is_upper ? end - 1 : begin;
    const real *from = left.at + row * left.row_step + k * left.step;
    vector sums[SUP_ROWS][SUP_COLUMNS] = {{{0}}};
    for (int rest = end - begin; rest > 0; rest -= SUP_BLOCK) {
        vector tile[SUP_ROWS][SUP_COLUMNS] = {{{0}}};
        for (int i = 0; i < rest && i < SUP_BLOCK; i++, k += forward, from += forward * left.step) {
            vector right[SUP_COLUMNS];
            UNROLL for (int x = 0; x < columns; x++) right[x] = panel[k * columns + x];
            UNROLL for (int r = 0; r < rows; r++)
                UNROLL for (int x = 0; x < columns; x++) tile[r][x] += from[r * left.row_step] * right[x];
        }
        UNROLL for (int r = 0; r < rows; r++)
            UNROLL for (int x = 0; x < columns; x++) sums[r][x] += tile[r][x];
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int x = 0; x < columns; x++)
            store(out + (row + r) * out_step + x * LANES, sums[r][x], width - x * LANES);
}

/* The same for the rows first <= r < rows; the last tile may overlap the one before. */
INLINE void sup_product_columns(int columns, struct sup_factor left, int first, int rows, int depth,
                                const vector *panel, real *out, ptrdiff_t out_step, int width) {
    int row = first;
    for (; row < rows && rows >= SUP_ROWS; row += SUP_ROWS) {
        if (row > rows - SUP_ROWS) row = rows - SUP_ROWS;
        sup_product_tile(SUP_ROWS, columns, left, row, depth, panel, out, out_step, width);
    }
    for (; row < rows; row++) sup_product_tile(1, columns, left, row, depth, panel, out, out_step, width);
}

static __attribute__((noinline)) void sup_panel_product(struct sup_factor left, int first, int rows, int depth,
                                                              const vector *panel, real *out, ptrdiff_t out_step,
                                                              int width) {
    const int columns = sup_panel_columns(width);
    if (columns == 1) sup_product_columns(1, left, first, rows, depth, panel, out, out_step, width);
    else if (columns == 2) sup_product_columns(2, left, first, rows, depth, panel, out, out_step, width);
    else sup_product_columns(SUP_COLUMNS, left, first, rows, depth, panel, out, out_step, width);
}

/* out[r] = sum_k left[r, k] right[k] for r < length, where right[k] and out[r] are vectors of this size. */
INLINE void sup_product(struct sup_factor left, int length, const real *right, int size, real *out, vector *panel) {
    for (int x = 0; x < size;) {
        const int columns = sup_panel_columns(size - x);
        for (int k = 0; k < length; k++)
            for (int column = 0; column < columns; column++) {
                const int at = x + column * LANES;
                panel[k * columns + column] = load(right + (size_t)k * size + at, size - at);
            }
        sup_panel_product(left, 0, length, length, panel, out + x, size, size - x);
        x += columns * LANES;
    }
}

/* Row i of x becomes column i. */
INLINE void transpose(vector x[LANES]) {
    UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
        ivector mask = (lane_numbers() & step) != 0;
        UNROLL for (int i = 0; i < LANES; i++) {
            if (i & step) continue;
            vector first = x[i], second = x[i + step];
            x[i] = choose(mask, exchange(second, step), first);
            x[i + step] = choose(mask, second, exchange(first, step));
        }
    }
}

/* out[t][i] = the product of left[t] and right[i], vectors of this size, for i <= t < length; others are any. */
INLINE void sup_inner_products(const real *left, const real *right, int length, int size, vector *out,
                               ptrdiff_t out_step, vector *panel) {
    for (int first = 0; first < length;) {
        const int columns = sup_panel_columns(length - first);
        for (int column = 0; column < columns; column++)
            for (int k = 0; k < size; k += LANES) {
                const int row = first + column * LANES, count = size - k < LANES ? size - k : LANES;
                vector square[LANES];
                for (int i = 0; i < LANES; i++)
                    square[i] = load(right + (size_t)(row + i) * size + k, row + i < length ? count : 0);
                transpose(square);
                for (int i = 0; i < count; i++) panel[(k + i) * columns + column] = square[i];
            }
        struct sup_factor factor = {left, size, 1, 0, 0};
        sup_panel_product(factor, first, length, size, panel, (real *)out + first, out_step * LANES,
                                columns * LANES);
        first += columns * LANES;
    }
}
