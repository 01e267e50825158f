/* The nondeterministic stack: both passes over one sequence of a call, in pieces (pieces.h), which several workers may
 * share. */

/* The forward pass over a sequence: (a)-(d), all inner weights, and W: [t - 1][y][i + 1].
 *
 * It is done in pieces: strips are the tiles, from the last one on, and after them what is read; blocks are `step` columns
 * each. If careful, what is not 0 does not become 0. */
struct nd_forward_pass {
    const struct nd_record *rec;
    struct nd_scratch scratch;
    real *weights;
    int careful, step;
    struct pieces pieces;
    atomic_int is_inexact; /* whether numbers are too small to be exact */
};

INLINE void nd_begin_forward(struct nd_forward_pass *pass, int is_shared) {
    const struct nd_record *rec = pass->rec;
    const int tiles = rec->tiles;
    struct pieces *pieces = &pass->pieces;
    pass->step = pass->careful ? 1 : TIME_TILE; /* alpha[t - 1] is computed before column t if it is needed */
    *pieces = (struct pieces){.strips = tiles + 1, .blocks = rec->n / pass->step + 1};
    pieces->begin = pass->scratch.begin;
    pieces->end = pass->scratch.end;
    pieces->done = is_shared ? pass->scratch.done : NULL;
    for (int strip = 0; strip <= tiles; strip++) {
        const int tile = tiles - 1 - strip;
        pieces->begin[strip] = tile > 0 ? tile * LANES / pass->step : 0;
        pieces->end[strip] = pieces->blocks;
        pass->scratch.done[strip] = pieces->begin[strip];
    }
    nd_start(rec);
}

/* Whether numbers are noted that are too small to be exact. */
INLINE int nd_is_inexact(ivector exact) {
    for (int lane = 0; lane < LANES; lane++)
        if (exact[lane] < 0) return 1;
    return 0;
}

/* What one worker does. */
INLINE void nd_go_forward(struct nd_forward_pass *pass, int Q, int S) {
    struct nd_record rec = nd_of_size(pass->rec, Q, S);
    ivector exact = {0};
    rec.exact = &exact;
    const struct nd_scratch scratch = pass->scratch;
    struct piece piece = first_piece(&pass->pieces);
    while (next_piece(&pass->pieces, &piece)) {
        const int tile = rec.tiles - 1 - piece.strip, first = piece.block * pass->step;
        const int last = first + pass->step <= rec.n ? first + pass->step : rec.n + 1;
        const int before = set_small_numbers(!pass->careful);
        if (tile >= 0) nd_fill(&rec, tile, first, last, pass->careful);
        for (int t = first > 1 ? first : 1; tile < 0 && t < last; t++) {
            nd_read_tops(&rec, t, scratch);
            restore_small_numbers(before); /* if careful, there is one t */
            nd_read(&rec, t, scratch, pass->weights + (size_t)(t - 1) * rec.C * rec.columns);
        }
        restore_small_numbers(before);
    }
    if (nd_is_inexact(exact)) atomic_store(&pass->is_inexact, 1);
}

/* The backward pass over a sequence: (h)-(l), the gradients of the logarithms of the transition weights, from W and its
 * cotangents d, both [t - 1][y][i + 1].
 *
 * It is done in pieces: strips are what is read, and after that the tiles, from the first one on; blocks are TIME_TILE
 * columns each, from the last ones on. */
struct nd_backward_pass {
    const struct nd_record *rec;
    struct nd_adjoint adjoint;
    const real *weights, *cotangents;
    struct pieces pieces;
    atomic_int workers; /* that have begun */
};

INLINE void nd_begin_backward(struct nd_backward_pass *pass, int is_shared) {
    const struct nd_record *rec = pass->rec;
    struct nd_adjoint *a = &pass->adjoint;
    struct pieces *pieces = &pass->pieces;
    *pieces = (struct pieces){.strips = rec->tiles + 1, .blocks = rec->n / TIME_TILE + 1};
    pieces->begin = a->begin;
    pieces->end = a->end;
    pieces->done = is_shared ? a->done : NULL;
    for (int strip = 0; strip <= rec->tiles; strip++) {
        const int tile = strip - 1;
        pieces->begin[strip] = a->done[strip] = 0;
        pieces->end[strip] = pieces->blocks - (tile > 0 ? tile * LANES / TIME_TILE : 0);
    }
    memset(a->alpha, 0, rec->tiles * rec->C * sizeof(vector));
    memset(a->popped, 0, rec->tiles * rec->Q * rec->C * sizeof(vector));
}

/* What one worker does. */
INLINE void nd_go_backward(struct nd_backward_pass *pass, int Q, int S) {
    const struct nd_record rec = nd_of_size(pass->rec, Q, S);
    const int C = rec.C, size = Q * C;
    struct nd_adjoint a = pass->adjoint;
    a.popped_sum += (size_t)atomic_fetch_add(&pass->workers, 1) * TIME_TILE * LANES * size;
    struct piece piece = first_piece(&pass->pieces);
    while (next_piece(&pass->pieces, &piece)) {
        const int tile = piece.strip - 1, first = (pass->pieces.blocks - 1 - piece.block) * TIME_TILE;
        const int last = first + TIME_TILE <= rec.n ? first + TIME_TILE : rec.columns;
        if (tile < 0) {
            for (int t = last - 1; t >= first && t > 0; t--) {
                const size_t top = (size_t)(t - 1) * C * rec.columns;
                nd_read_back(&rec, &a, t, pass->weights + top, pass->cotangents + top);
            }
            continue;
        }
        const size_t steps = pass->pieces.done ? first : 0;
        vector *replaced = a.replaced + steps * C * C, *pops = a.pops + steps * size;
        if (tile == 0) {
            memset(replaced, 0, TIME_TILE * C * C * sizeof(vector));
            memset(pops, 0, TIME_TILE * size * sizeof(vector));
        }
        nd_fill_back(&rec, &a, tile, first, last, replaced, pops);
        for (int t = first > 1 ? first : 1; tile == (last - 1) / LANES && t < last; t++)
            nd_store_gradients(Q, S, nd_row_transitions(&rec, t), replaced + (t - first) * C * C, pops + (t - first) * size,
                               nd_row_gradients(&rec, &a, t));
    }
}

INLINE struct nd_record nd_of_sequence(const struct nd_call *call, int64_t sequence) {
    return nd_lay_out(call->length, call->num_states, call->num_symbols,
                      (char *)call->workspace + sequence * call->workspace_bytes);
}

/* What a worker does in a pass. */
FOR_SIZES(nd_work_forward, (void *pass), (pass), ((struct nd_forward_pass *)pass)->rec, nd_go_forward(pass, Q, S))
FOR_SIZES(nd_work_backward, (void *pass), (pass), ((struct nd_backward_pass *)pass)->rec, nd_go_backward(pass, Q, S))

/* Makes W NaN from step t on; `first` is its place in the array. */
INLINE void nd_undefine(const struct nd_record *rec, const struct nd_call *call, size_t first, int t) {
    const size_t step = (size_t)rec->C * rec->columns;
    for (size_t i = first + (t - 1) * step; i < first + rec->n * step; i++)
        if (call->is_double) ((double *)call->weights)[i] = NAN;
        else ((float *)call->weights)[i] = NAN;
}

/* For a sequence that the type is not precise enough for: in float, double has to compute it; in double, it is noted. */
INLINE int nd_leave(const struct nd_call *call, int64_t sequence) {
    call->inexact[sequence] = sizeof(real) == 8;
    return sizeof(real) == 8;
}

/* Leaves sequences for which the type is not precise enough. Log weights that are NaN or inf are undefined.
 * What depends on them is undefined, too; what does not is the same as if they were ordinary numbers, and so is what
 * the backward pass finds in the record. */
static int nd_forward(const void *given, int64_t sequence, char *memory) {
    const int is_float = sizeof(real) == 4;
    const struct nd_call *call = given;
    struct nd_record rec = nd_of_sequence(call, sequence);
    const struct nd_scratch scratch = nd_lay_out_scratch(&rec, memory);
    const size_t size = nd_weights_size(&rec), first = sequence * size;
    const struct nd_spread spread = nd_prepare(&rec, call, sequence);
    const int is_near = nd_is_near(spread);
    call->wide[sequence] = 1;
    if (!is_near && (is_float || spread.range > -LOWEST_LOG)) return nd_leave(call, sequence);
    rec.lowest = isplat(is_near ? 3 * DEAD : 1 - EXPONENT_BIAS);
    struct nd_forward_pass pass = {
        .rec = &rec,
        .scratch = scratch,
        .weights = is_same_type(call->is_double) ? (real *)call->weights + first : scratch.weights,
        .careful = !is_near,
    };
    const struct resources *crew = is_near ? call->crew : NULL;
    nd_begin_forward(&pass, crew != NULL);
    share(crew, nd_work_forward, &pass);
    if ((is_float || !is_near) && pass.is_inexact) return nd_leave(call, sequence);
    if (!is_same_type(call->is_double)) put_numbers(call->is_double, call->weights, first, size, scratch.weights);
    if (spread.undefined) nd_undefine(&rec, call, first, spread.undefined);
    call->wide[sequence] = !is_float;
    return 1;
}

static int nd_backward(const void *given, int64_t sequence, char *memory) {
    const struct nd_call *call = given;
    if (call->inexact[sequence]) return 1;
    if (call->wide[sequence] && sizeof(real) == 4) return 0;
    const struct nd_record rec = nd_of_sequence(call, sequence);
    const struct nd_adjoint a = nd_lay_out_adjoint(&rec, memory, num_workers(call->crew));
    const size_t size = nd_weights_size(&rec), first = sequence * size;
    if (!is_same_type(call->is_double)) {
        get_numbers(a.weights, call->is_double, call->weights, first, size);
        get_numbers(a.cotangents, call->is_double, call->cotangents, first, size);
    }
    struct nd_backward_pass pass = {
        .rec = &rec,
        .adjoint = a,
        .weights = is_same_type(call->is_double) ? (const real *)call->weights + first : a.weights,
        .cotangents = is_same_type(call->is_double) ? (const real *)call->cotangents + first : a.cotangents,
    };
    nd_begin_backward(&pass, call->crew != NULL);
    share(call->crew, nd_work_backward, &pass);
    const size_t count = (size_t)rec.n * rec.C * rec.width;
    put_numbers(call->is_double, call->logit_gradients, sequence * count, count, a.gradients);
    return 1;
}

static void nd_sizes(int n, int Q, int S, int workers, size_t sizes[3]) {
    const struct nd_record rec = nd_lay_out(n, Q, S, NULL);
    sizes[0] = rec.bytes;
    sizes[1] = nd_lay_out_scratch(&rec, NULL).bytes;
    sizes[2] = nd_lay_out_adjoint(&rec, NULL, workers).bytes;
}
