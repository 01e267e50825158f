/* The loop of a controller: what its passes keep of a sequence, and their access to the arrays of a call. */

struct ctrl_shape {
    size_t n, T, k, m, h;
    size_t K, P, R, C; /* as in calls.h */
    size_t first;      /* where h_t is in [x_{t+1}; r_t; h_t] */
    size_t strengths;  /* how many rows are strengths, */
    size_t bounded;    /* and how many, the strengths and the pushed vector, are sigmoids */
};

INLINE struct ctrl_shape ctrl_shape_of(const struct ctrl_call *call) {
    static const int gates[] = {0, 1, 4, 4};
    struct ctrl_shape s = {
        .n = call->length, .T = call->steps, .k = call->input_size, .m = call->vector_size, .h = call->hidden_size};
    s.first = s.k + s.m;
    s.K = s.first + s.h;
    s.P = gates[call->controller] * s.h;
    s.R = call->rows;
    s.C = call->controller == CONTROLLER_LINEAR ? s.first : s.h;
    s.strengths = call->is_buffered ? 4 : 2;
    s.bounded = s.strengths + (call->pushes_input ? 0 : s.m);
    return s;
}

/* How many numbers the vectors have that cover `count` of them. */
INLINE size_t ctrl_padded(size_t count) { return (count + LANES - 1) / LANES * LANES; }

/* One sequence: the record that the forward pass leaves, and working memory. Vectors of gates and rows are padded. */
struct ctrl_sequence {
    struct ctrl_shape shape;
    size_t number;
    struct ctrl_memory memory;
    real *computed;   /* the rows, (T, R) */
    real *remembered; /* [x_{t+1}; r_t; h_t] from t = 0 on, (T + 1, K) */
    real *gates;      /* after their activations, (T, P) */
    real *cells;      /* c_0..c_T, and tanh(c_t), (T, h), of an LSTM */
    real *bounded;
    real *positions; /* in the input buffer, (T) */
    size_t bytes;
    /* working memory: */
    real *inputs;                      /* (n, k) */
    real *recurrent, *recurrent_bias;  /* (K, P); backward (P, K) */
    real *weights, *bias;              /* (C, R); backward (R, C) */
    real *of_inputs;                   /* gradients, (n, k) */
    real *of_remembered[2];            /* of [x_{t+1}; r_t; h_t] for the last t and for the one before */
    real *of_rows, *of_gates;          /* before their activations */
    real *of_features, *of_cell;
    size_t scratch_bytes;
};

/* Sizes in bytes are known without any memory. */
static struct ctrl_sequence ctrl_lay_out(const struct ctrl_call *call, int is_backward, char *record, char *scratch) {
    const struct ctrl_shape shape = ctrl_shape_of(call);
    const size_t n = shape.n, T = shape.T, k = shape.k, m = shape.m, h = shape.h;
    const size_t K = ctrl_padded(shape.K), P = ctrl_padded(shape.P), R = ctrl_padded(shape.R), C = ctrl_padded(shape.C);
    const size_t cells = call->controller == CONTROLLER_LSTM ? h : 0, pushed = call->memory == MEMORY_NONE ? 0 : T;
    struct ctrl_sequence s = {.shape = shape};
    char *memory = record;
    size_t used = 0;
    TAKE(s.computed, T * R)
    TAKE(s.remembered, (T + 1) * shape.K)
    TAKE(s.gates, T * P)
    TAKE(s.cells, (T + 1) * cells)
    TAKE(s.bounded, T * cells)
    TAKE(s.positions, call->is_buffered ? T : 0)
    s.bytes = used;
    memory = scratch;
    used = 0;
    TAKE(s.inputs, n * k)
    TAKE(s.recurrent, is_backward ? shape.P * K : shape.K * P)
    TAKE(s.recurrent_bias, P)
    TAKE(s.weights, is_backward ? shape.R * C : shape.C * R)
    TAKE(s.bias, R)
    if (is_backward) {
        TAKE(s.of_inputs, n * k)
        TAKE(s.of_remembered[0], K)
        TAKE(s.of_remembered[1], K)
        TAKE(s.of_rows, R)
        TAKE(s.of_gates, P)
        TAKE(s.of_features, C)
        TAKE(s.of_cell, cells)
    }
    s.memory = ctrl_lay_out_memory(call->memory == MEMORY_QUEUE, pushed, m, record ? record + s.bytes : NULL,
                                   scratch ? scratch + used : NULL);
    s.bytes += s.memory.bytes;
    s.scratch_bytes = used + s.memory.scratch_bytes;
    return s;
}

/* A matrix of the call, each row of which gets zeros after it that fill a vector. */
INLINE void ctrl_get_matrix(const struct ctrl_call *call, const void *matrix, size_t rows, size_t columns, real *to) {
    const size_t padded = ctrl_padded(columns);
    for (size_t i = 0; i < rows; i++) {
        get_numbers(to + i * padded, call->is_double, matrix, i * columns, columns);
        memset(to + i * padded + columns, 0, (padded - columns) * sizeof(real));
    }
}

/* The sequence, with the weights and the inputs in its working memory. */
static struct ctrl_sequence ctrl_begin(const struct ctrl_call *call, int64_t number, int is_backward, char *scratch) {
    char *record = (char *)call->workspace + number * call->workspace_bytes;
    struct ctrl_sequence s = ctrl_lay_out(call, is_backward, record, scratch);
    const struct ctrl_shape *shape = &s.shape;
    s.number = number;
    get_numbers(s.inputs, call->is_double, call->inputs, number * shape->n * shape->k, shape->n * shape->k);
    if (is_backward) {
        ctrl_get_matrix(call, call->recurrent, shape->P, shape->K, s.recurrent);
        ctrl_get_matrix(call, call->weights, shape->R, shape->C, s.weights);
    } else {
        ctrl_get_matrix(call, call->recurrent, shape->K, shape->P, s.recurrent);
        ctrl_get_matrix(call, call->recurrent_bias, 1, shape->P, s.recurrent_bias);
        ctrl_get_matrix(call, call->weights, shape->C, shape->R, s.weights);
        ctrl_get_matrix(call, call->bias, 1, shape->R, s.bias);
    }
    return s;
}

/* to = from + x M for a padded matrix; NULL stands for zeros. */
INLINE void ctrl_multiply(size_t rows, size_t columns, const real *matrix, const real *from, const real *x, real *to) {
    const struct rnn_product p = {.rows = (int)rows, .columns = (int)ctrl_padded(columns), .matrix = matrix,
                                  .from = {from}, .x = {x}, .to = {to}};
    rnn_multiply(1, &p);
}
