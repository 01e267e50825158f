/* The nondeterministic stack: the passes over one sequence of a call. */

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

/* Declines sequences for which the type is not precise enough. Log weights that are NaN or inf are undefined.
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
    if (!is_near && (is_float || spread.range > -LOWEST_LOG)) return 0;
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
    if ((is_float || !is_near) && pass.is_inexact) return 0;
    if (!is_same_type(call->is_double)) put_numbers(call->is_double, call->weights, first, size, scratch.weights);
    if (spread.undefined) nd_undefine(&rec, call, first, spread.undefined);
    call->wide[sequence] = !is_float;
    return 1;
}

static int nd_backward(const void *given, int64_t sequence, char *memory) {
    const struct nd_call *call = given;
    if (call->inexact[sequence] || (call->wide[sequence] && sizeof(real) == 4)) return 0;
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
    const size_t rows = (size_t)rec.n * rec.C;
    for (size_t row = 0, to = sequence * rows; row < rows; row++, to++) {
        const real *own = a.gradients + row * rec.width;
        put_numbers(call->is_double, call->push_gradients, to * rec.C, rec.C, own);
        put_numbers(call->is_double, call->replace_gradients, to * rec.C, rec.C, own + rec.C);
        put_numbers(call->is_double, call->pop_gradients, to * rec.Q, rec.Q, own + 2 * rec.C);
    }
    return 1;
}

static void nd_sizes(int n, int Q, int S, int workers, size_t sizes[3]) {
    const struct nd_record rec = nd_lay_out(n, Q, S, NULL);
    sizes[0] = rec.bytes;
    sizes[1] = nd_lay_out_scratch(&rec, NULL).bytes;
    sizes[2] = nd_lay_out_adjoint(&rec, NULL, workers).bytes;
}
