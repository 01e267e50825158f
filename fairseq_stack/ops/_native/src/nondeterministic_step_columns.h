/* The nondeterministic stack one step at a time: columns, and what a step needs of them (Section 7).
 *
 * A column is what step t leaves, and is never changed. With a window of D steps (limited memory) only the rows i + 1
 * with t - i <= D are in column t, and step t needs the columns t - D..t - 1. Tiles that have none of these rows are
 * left out, and what is stored in other rows of a tile is 0.
 */

struct nd_step_column {
    int tile;                 /* the first */
    vector *gamma;            /* g[i -> t][x -> y]: [tile][symbol][r][x] */
    ivector *exponent;        /* e[i, t]: [tile] */
    vector *popped;           /* g'[k -> t][x -> r] at row k + 1: [tile][r][x] */
    ivector *popped_exponent; /* e'[k, t] */
    real *transitions;        /* D_t: [x][C pushes, C replacements, Q pops] */
    real *alpha;              /* a[t]: [x] */
    real *total;              /* z_t */
    integer *alpha_exponent;  /* A_t */
    real *value;              /* v_t, with 0 for components that are not finite */
    real *marks;              /* added to the readings: NaN in the components in which a vector is not finite, */
    real *mark;               /* or in all, as a log weight is undefined; else 0 */
    real *careful;            /* not 0 if log weights of this step or an earlier one were far apart or forbidden */
    size_t bytes;
};

/* The first row of column t. */
INLINE int nd_step_first_row(int t, int64_t window) { return t - window + 1 > 0 ? (int)(t - window + 1) : 0; }

INLINE struct nd_step_column nd_step_lay_out(int t, int64_t window, int Q, int S, int value_size, char *memory) {
    const size_t C = (size_t)Q * S;
    struct nd_step_column column = {.tile = nd_step_first_row(t, window) / LANES};
    size_t used = 0, tiles = t / LANES - column.tile + 1;
    TAKE(column.gamma, tiles * C * C)
    TAKE(column.exponent, tiles)
    TAKE(column.popped, tiles * Q * C)
    TAKE(column.popped_exponent, tiles)
    TAKE(column.transitions, C * (2 * C + Q))
    TAKE(column.alpha, C)
    TAKE(column.total, (size_t)1)
    TAKE(column.alpha_exponent, (size_t)1)
    TAKE(column.value, (size_t)value_size)
    TAKE(column.marks, (size_t)value_size)
    TAKE(column.mark, (size_t)1)
    TAKE(column.careful, (size_t)1)
    column.bytes = used;
    return column;
}

/* The derivatives that belong to column t; none for columns that are constants. */
struct nd_step_adjoint {
    vector *outer; /* O[i -> t][x -> y], laid out like gamma */
    real *alpha;   /* 2^A_t dL/dalpha[t][x] */
    real *value;   /* of v_t */
    real *mark;    /* NaN if the gradient of an undefined reading is not 0, else 0 */
    size_t bytes;
};

INLINE struct nd_step_adjoint nd_step_lay_out_adjoint(int t, int64_t window, int Q, int S, int value_size,
                                                      char *memory) {
    const size_t C = (size_t)Q * S;
    struct nd_step_adjoint a;
    size_t used = 0, tiles = t / LANES - nd_step_first_row(t, window) / LANES + 1;
    TAKE(a.outer, tiles * C * C)
    TAKE(a.alpha, C)
    TAKE(a.value, (size_t)value_size)
    TAKE(a.mark, (size_t)1)
    a.bytes = used;
    return a;
}

/* A step: its sizes, the columns that it needs, and the working memory of the forward pass. Arrays of tiles begin with
 * the first tile of column t. */
struct nd_one_step {
    int t, Q, S, C, width, value_size;
    int row;   /* the first row */
    int tile;  /* the first tile */
    int tiles; /* how many */
    int kept;  /* the number of the first column in `columns` */
    struct nd_step_column own, *columns;
    const vector **gammas; /* of the columns: where those would begin if their first tile were number 0 */
    vector *alpha;         /* a[i] at row i + 1: [tile][x] */
    ivector *alpha_exponent;
    vector *factors; /* for each column */
    vector *tops;    /* the numerators of W, then W: [tile][y] */
    vector *values;  /* v_i at row i: [tile][component] */
    ivector *exact;  /* sign bits are set if the step is not exact: see nd_normalise */
    size_t bytes;    /* of the working memory */
};

INLINE struct nd_one_step nd_step_begin(int t, int kept, int64_t window, int Q, int S, int value_size, char *memory) {
    struct nd_one_step s = {.t = t, .Q = Q, .S = S, .C = Q * S, .width = 2 * Q * S + Q, .value_size = value_size};
    s.kept = kept;
    s.row = nd_step_first_row(t, window);
    s.tile = s.row / LANES;
    s.tiles = t / LANES - s.tile + 1;
    size_t used = 0, columns = t - kept + 1;
    TAKE(s.columns, columns)
    TAKE(s.gammas, columns)
    TAKE(s.factors, columns)
    TAKE(s.alpha, (size_t)s.tiles * s.C)
    TAKE(s.alpha_exponent, (size_t)s.tiles)
    TAKE(s.tops, (size_t)s.tiles * s.C)
    TAKE(s.values, (size_t)s.tiles * value_size)
    TAKE(s.exact, (size_t)1)
    s.bytes = used;
    return s;
}

/* Lets the step use this column k. */
INLINE void nd_step_use(struct nd_one_step *s, int k, struct nd_step_column column) {
    s->columns[k - s->kept] = column;
    s->gammas[k - s->kept] = column.gamma - (ptrdiff_t)column.tile * s->C * s->C;
}

INLINE const struct nd_step_column *nd_step_of(const struct nd_one_step *s, int k) { return &s->columns[k - s->kept]; }

/* gamma[. -> k][. -> (0, symbol)] of an earlier column for a tile, followed by the other states. */
INLINE vector *nd_step_gamma(const struct nd_one_step *s, const struct nd_step_column *column, int tile, int symbol) {
    return column->gamma + ((size_t)(tile - column->tile) * s->S + symbol) * s->Q * s->C;
}

INLINE ivector nd_step_exponent(const struct nd_one_step *s, int k, int tile) {
    const struct nd_step_column *column = nd_step_of(s, k);
    return column->exponent[tile - column->tile];
}

/* The first column whose pops reach rows of this tile. */
INLINE int nd_step_first_pop(const struct nd_one_step *s, int tile) {
    return tile * LANES > s->row ? tile * LANES : s->row;
}

/* The same step, as nd_of_size. */
INLINE struct nd_one_step nd_step_of_size(const struct nd_one_step *given, int Q, int S) {
    struct nd_one_step s = *given;
    s.Q = Q, s.S = S, s.C = Q * S, s.width = 2 * s.C + Q;
    return s;
}
