/* The nondeterministic stack: the passes over one sequence of a call. */

/* The records are local and handed to inlined functions alone, so that constant sizes are constants everywhere. */
#define nd_of_sequence NAME(nd_of_sequence)
INLINE struct nd_record nd_of_sequence(const struct nd_call *call, int64_t sequence, int Q, int S) {
    return nd_lay_out(call->length, Q, S, (char *)call->workspace + sequence * call->workspace_bytes);
}

/* Makes W NaN from step t on; `first` is its place in the array. */
#define nd_undefine NAME(nd_undefine)
INLINE void nd_undefine(const struct nd_record *rec, const struct nd_call *call, size_t first, int t) {
    const size_t step = (size_t)rec->C * rec->columns;
    for (size_t i = first + (t - 1) * step; i < first + rec->n * step; i++)
        if (call->is_double) ((double *)call->weights)[i] = NAN;
        else ((float *)call->weights)[i] = NAN;
}

/* Whether the forward pass has noted numbers that are too small to be exact. */
#define nd_is_inexact NAME(nd_is_inexact)
INLINE int nd_is_inexact(ivector exact) {
    for (int lane = 0; lane < LANES; lane++)
        if (exact[lane] < 0) return 1;
    return 0;
}

/* Declines sequences for which the type is not precise enough. Log weights that are NaN or inf are undefined.
 * What depends on them is undefined, too; what does not is the same as if they were ordinary numbers, and so is what
 * the backward pass finds in the record. */
#define nd_forward_sized NAME(nd_forward_sized)
INLINE int nd_forward_sized(const struct nd_call *call, int64_t sequence, char *memory, int Q, int S) {
    const int is_float = sizeof(real) == 4;
    struct nd_record rec = nd_of_sequence(call, sequence, Q, S);
    const struct nd_scratch scratch = nd_lay_out_scratch(&rec, memory);
    const size_t size = nd_weights_size(&rec), first = sequence * size;
    const struct nd_spread spread = nd_prepare(&rec, call, sequence);
    ivector exact = {0};
    const int is_near = nd_is_near(spread);
    call->wide[sequence] = 1;
    if (!is_near && (is_float || spread.range > -LOWEST_LOG)) return 0;
    rec.exact = &exact;
    rec.lowest = isplat(is_near ? 3 * DEAD : 1 - EXPONENT_BIAS);
    nd_forward_body(&rec, scratch, is_own(call) ? (real *)call->weights + first : scratch.weights, !is_near);
    if ((is_float || !is_near) && nd_is_inexact(exact)) return 0;
    if (!is_own(call)) to_array(call, call->weights, first, size, scratch.weights);
    if (spread.undefined) nd_undefine(&rec, call, first, spread.undefined);
    call->wide[sequence] = !is_float;
    return 1;
}

#define nd_backward_sized NAME(nd_backward_sized)
INLINE int nd_backward_sized(const struct nd_call *call, int64_t sequence, char *memory, int Q, int S) {
    if (call->inexact[sequence] || (call->wide[sequence] && sizeof(real) == 4)) return 0;
    const struct nd_record rec = nd_of_sequence(call, sequence, Q, S);
    struct nd_adjoint a = nd_lay_out_adjoint(&rec, memory);
    const size_t size = nd_weights_size(&rec), first = sequence * size;
    if (!is_own(call)) {
        from_array(a.weights, call, call->weights, first, size);
        from_array(a.cotangents, call, call->cotangents, first, size);
    }
    nd_backward_body(&rec, &a, is_own(call) ? (const real *)call->weights + first : a.weights,
                     is_own(call) ? (const real *)call->cotangents + first : a.cotangents);
    const size_t rows = (size_t)rec.n * rec.C;
    for (size_t row = 0, to = sequence * rows; row < rows; row++, to++) {
        const real *own = a.gradients + row * rec.width;
        to_array(call, call->push_gradients, to * rec.C, rec.C, own);
        to_array(call, call->replace_gradients, to * rec.C, rec.C, own + rec.C);
        to_array(call, call->pop_gradients, to * rec.Q, rec.Q, own + 2 * rec.C);
    }
    return 1;
}

/* Compiled for all sizes and, except for the slowest instruction set, again for the sizes that the papers use. */
#undef FOR_SIZES
#undef COMPILE
#define FOR_SIZES(pass, name, call_type, num_states, num_symbols)                                   \
    static __attribute__((noinline)) int name(const void *call, int64_t sequence, char *scratch) {  \
        const call_type *c = call;                                                                  \
        return pass(c, sequence, scratch, num_states, num_symbols);                                 \
    }
#if VECTOR_BYTES > 16
#define COMPILE(pass, call_type)                                                            \
    FOR_SIZES(pass##_sized, NAME(pass##_2_3), call_type, 2, 3)                              \
    FOR_SIZES(pass##_sized, NAME(pass##_3_3), call_type, 3, 3)                              \
    FOR_SIZES(pass##_sized, NAME(pass##_any), call_type, c->num_states, c->num_symbols)     \
    static kernel *NAME(pass)(int Q, int S) {                                               \
        if (Q == 2 && S == 3) return NAME(pass##_2_3);                                      \
        return Q == 3 && S == 3 ? NAME(pass##_3_3) : NAME(pass##_any);                      \
    }
#else
#define COMPILE(pass, call_type)                                                            \
    FOR_SIZES(pass##_sized, NAME(pass##_any), call_type, c->num_states, c->num_symbols)     \
    static kernel *NAME(pass)(int Q, int S) {                                               \
        return Q > 0 && S > 0 ? NAME(pass##_any) : NULL;                                    \
    }
#endif

COMPILE(nd_forward, struct nd_call)
COMPILE(nd_backward, struct nd_call)

static void NAME(nd_sizes)(int n, int Q, int S, size_t sizes[3]) {
    const struct nd_record rec = nd_lay_out(n, Q, S, NULL);
    sizes[0] = rec.bytes;
    sizes[1] = nd_lay_out_scratch(&rec, NULL).bytes;
    sizes[2] = nd_lay_out_adjoint(&rec, NULL).bytes;
}
