/* An LSTM with stacks: what its passes keep of a sequence, and their access to the arrays of a call.
 *
 * A step remembers K = R + H numbers, the readings and the hidden state. P projections of the hidden state drive the
 * stacks. Nothing reads them after the last step, so they take one step less.
 */

struct rnn_shape {
    size_t n, H, R, K, P;
};

INLINE struct rnn_shape rnn_shape_of(const struct rnn_call *call) {
    struct rnn_shape s = {.n = call->length, .H = call->hidden_size};
    for (int64_t i = 0; i < call->num_stacks; i++) {
        s.R += rnn_reading_size(&call->stacks[i]);
        s.P += rnn_num_projected(&call->stacks[i]);
    }
    s.K = s.R + s.H;
    return s;
}

/* One sequence: the record that the forward pass leaves, and working memory. */
struct rnn_sequence {
    int64_t number;
    real *gates;      /* after their activations, (n, 4 H) */
    real *cells;      /* c_0..c_n */
    real *bounded;    /* tanh(c_t), (n, H) */
    real *remembered; /* [r_t; h_t] from t = 0 on, (n + 1, K) */
    real *driving;    /* what drives the stacks, (n, P) */
    size_t bytes;
    /* working memory: */
    struct rnn_driven *stacks;
    real *input, *kept; /* the input's part of the gates of a step, and the factors of its candidates */
    real *projected;    /* gradients of the projections */
    real *of_gates;     /* of the gates before their activations */
    real *of_hidden[2]; /* of h_t, without and with what the stacks add */
    real *of_cell;
    real *of_remembered;
    size_t scratch_bytes;
};

static struct rnn_sequence rnn_lay_out(const struct rnn_call *call, int is_backward, char *record, char *scratch) {
    const struct rnn_shape shape = rnn_shape_of(call);
    const size_t n = shape.n, H = shape.H, K = shape.K, P = shape.P, stacks = call->num_stacks;
    struct rnn_sequence s = {0};
    char *memory = record;
    size_t used = 0;
    TAKE(s.gates, n * 4 * H)
    TAKE(s.cells, (n + 1) * H)
    TAKE(s.bounded, n * H)
    TAKE(s.remembered, (n + 1) * K)
    TAKE(s.driving, n * P)
    s.bytes = used;
    memory = scratch;
    used = 0;
    TAKE(s.stacks, stacks)
    TAKE(s.input, 4 * H)
    TAKE(s.kept, H)
    TAKE(s.projected, P)
    TAKE(s.of_gates, 4 * H)
    TAKE(s.of_hidden[0], H)
    TAKE(s.of_hidden[1], H)
    TAKE(s.of_cell, H)
    TAKE(s.of_remembered, K)
    for (size_t i = 0; i < stacks; i++) {
        struct rnn_driven d = {.stack = &call->stacks[i]};
        TAKE(d.of_value, (size_t)d.stack->value_size)
        char *own_record = record ? record + s.bytes : NULL, *own_scratch = scratch ? scratch + used : NULL;
        if (d.stack->kind == STACK_AUTOMATON) {
            d.nd = rnn_nd_lay_out(d.stack, n, own_record, own_scratch);
            s.bytes += d.nd.steps.bytes;
            used += is_backward ? d.nd.steps.backward_bytes : d.nd.steps.forward_bytes;
        } else if (d.stack->kind == STACK_STRATIFICATION) {
            d.strat = ctrl_lay_out_memory(0, n - 1, d.stack->value_size, own_record, own_scratch);
            s.bytes += d.strat.bytes;
            used += d.strat.scratch_bytes;
        } else {
            d.sup = rnn_sup_lay_out(d.stack, n, own_record, own_scratch);
            s.bytes += d.sup.bytes;
            used += is_backward ? d.sup.scratch_bytes : 0;
        }
        if (scratch) s.stacks[i] = d;
    }
    s.scratch_bytes = used;
    return s;
}

/* The weights in this kernel's real type; backward they are transposed (calls.h). */
struct rnn_weights {
    const real *recurrent, *driving, *bias;
    size_t bytes; /* of working memory */
};

static struct rnn_weights rnn_get_weights(const struct rnn_call *call, char *memory) {
    const struct rnn_shape s = rnn_shape_of(call);
    const int copied = !is_same_type(call->is_double);
    struct rnn_weights w;
    real *recurrent, *driving, *bias;
    size_t used = 0;
    TAKE(recurrent, copied ? s.K * 4 * s.H : 0)
    TAKE(driving, copied ? s.P * s.H : 0)
    TAKE(bias, copied ? s.P : 0)
    w.bytes = used;
    if (!memory) return w;
    w.recurrent = see_numbers(call->is_double, call->recurrent, 0, s.K * 4 * s.H, recurrent);
    w.driving = see_numbers(call->is_double, call->driving, 0, s.P * s.H, driving);
    w.bias = see_numbers(call->is_double, call->bias, 0, s.P, bias);
    return w;
}

/* The sequences of a block that this kernel computes, and the weights. */
struct rnn_block {
    int count;
    struct rnn_weights weights;
    struct rnn_sequence sequences[MOST_TOGETHER];
};

/* In a call of float, the kernel of double computes those for which float is not precise enough. */
static struct rnn_block rnn_begin_block(const struct rnn_call *call, int64_t number, int is_backward, char *memory) {
    const int64_t first = number * call->together, rest = call->sequences - first;
    struct rnn_block block = {.weights = rnn_get_weights(call, memory)};
    memory += block.weights.bytes;
    for (int64_t i = first; i < first + (rest < call->together ? rest : call->together); i++) {
        if (call->inexact[i] || (!call->is_double && call->wide[i] != (sizeof(real) == 8))) continue;
        struct rnn_sequence *s = &block.sequences[block.count++];
        *s = rnn_lay_out(call, is_backward, (char *)call->workspace + i * call->workspace_bytes, memory);
        s->number = i;
        memory += s->scratch_bytes;
    }
    return block;
}
