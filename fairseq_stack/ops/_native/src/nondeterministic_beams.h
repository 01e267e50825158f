/* A step of the nondeterministic stack for a batch of beams.
 *
 * The beams of step t have their columns side by side; which of them a beam descends from at each earlier step is in the
 * table `ancestors`. Reordering beams moves rows of the table, and no columns.
 */

/* The step of a call for one beam. */
INLINE struct nd_one_step nd_step_of_beam(const struct nd_step_call *call, int64_t beam, char *memory) {
    const int t = call->step, kept = call->kept, Q = call->num_states, S = call->num_symbols, size = call->value_size;
    struct nd_one_step s = nd_step_begin(t, kept, call->window, Q, S, size, memory);
    for (int k = kept; k <= t; k++) {
        const size_t bytes = nd_step_lay_out(k, call->window, Q, S, size, NULL).bytes;
        const int64_t place = k < t ? call->ancestors[beam * (t - kept) + k - kept] : beam;
        char *own = (char *)call->columns[k - kept] + place * bytes;
        nd_step_use(&s, k, nd_step_lay_out(k, call->window, Q, S, size, own));
    }
    s.own = *nd_step_of(&s, t);
    return s;
}

static int nd_step(const void *given, int64_t beam, char *memory) {
    const struct nd_step_call *call = given;
    const struct nd_one_step s = nd_step_of_beam(call, beam, memory);
    const size_t logits = (size_t)s.C * (s.t > 0 ? s.width : 1);
    nd_step_forward(&s, call->logits ? (const real *)call->logits + beam * logits : NULL,
                          (const real *)call->values + beam * s.value_size,
                          (real *)call->readings + beam * s.C * s.value_size);
    call->inexact[beam] = nd_is_inexact(*s.exact);
    return 1;
}

static int nd_step_backward(const void *given, int64_t beam, char *memory) {
    const struct nd_step_call *call = given;
    const struct nd_one_step s = nd_step_of_beam(call, beam, memory);
    struct nd_step_back b = nd_step_back_begin(&s, memory + s.bytes);
    for (int k = s.kept; k <= s.t; k++) {
        char *own = call->adjoints[k - s.kept];
        struct nd_step_adjoint a = {0};
        if (own) {
            const size_t bytes = nd_step_lay_out_adjoint(k, call->window, s.Q, s.S, s.value_size, NULL).bytes;
            a = nd_step_lay_out_adjoint(k, call->window, s.Q, s.S, s.value_size, own + beam * bytes);
        }
        b.earlier[k - s.kept] = a;
    }
    b.own = b.earlier[s.t - s.kept];
    const size_t count = (size_t)s.C * (s.t > 0 ? s.width : 1), readings = (size_t)s.C * s.value_size;
    nd_step_differentiate(&s, &b, call->cotangents ? (const real *)call->cotangents + beam * readings : NULL,
                          (real *)call->logit_gradients + beam * count,
                          (real *)call->value_gradients + beam * s.value_size);
    return 1;
}

/* Bytes for one beam: of the column of step t, of its adjoint, and of the working memory of both passes. */
static void nd_step_sizes(const struct nd_step_call *call, size_t sizes[4]) {
    const int t = call->step, Q = call->num_states, S = call->num_symbols, size = call->value_size;
    const struct nd_one_step s = nd_step_begin(t, call->kept, call->window, Q, S, size, NULL);
    sizes[0] = nd_step_lay_out(t, call->window, Q, S, size, NULL).bytes;
    sizes[1] = nd_step_lay_out_adjoint(t, call->window, Q, S, size, NULL).bytes;
    sizes[2] = s.bytes;
    sizes[3] = s.bytes + nd_step_back_begin(&s, NULL).bytes;
}
