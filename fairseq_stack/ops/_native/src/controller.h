/* A controller with a stack or a queue, and with or without an input buffer: both passes over one sequence (Section 8.2
 * of docs/algorithm.md). Only in double, whatever the arrays of the call are in.
 */

/* ---------------------------------------------------------------- forward */

/* x_t, from the input, or from the buffer after i_{t-1} is popped. */
INLINE void ctrl_input(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t) {
    const struct ctrl_shape *shape = &s->shape;
    real *x = s->remembered + (t - 1) * shape->K;
    if (call->is_buffered) {
        const real *last = t > 1 ? s->computed + (t - 2) * ctrl_padded(shape->R) : NULL;
        s->positions[t - 1] = last ? s->positions[t - 2] + last[2] : 0;
        ctrl_look_up(s->inputs, shape->n, shape->k, s->positions[t - 1], x);
    } else if (t <= shape->n) {
        memcpy(x, s->inputs + (t - 1) * shape->k, shape->k * sizeof(real));
    }
}

/* Lets a recurrent cell take step t; returns what the linear layer gets, [x_t; r_{t-1}] or h_t. */
INLINE const real *ctrl_control(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t) {
    const struct ctrl_shape *shape = &s->shape;
    const size_t h = shape->h;
    const real *last = s->remembered + (t - 1) * shape->K;
    real *gates = s->gates + (t - 1) * ctrl_padded(shape->P), *hidden = s->remembered + t * shape->K + shape->first;
    if (call->controller == CONTROLLER_LINEAR) return last;
    ctrl_multiply(shape->K, shape->P, s->recurrent, s->recurrent_bias, last, gates);
    if (call->controller == CONTROLLER_RNN) ctrl_rnn(h, gates, hidden);
    else if (call->controller == CONTROLLER_GRU) ctrl_gru(h, gates, last + shape->first, hidden);
    else rnn_cell(h, gates, NULL, s->cells + (t - 1) * h, s->cells + t * h, s->bounded + (t - 1) * h, hidden);
    return hidden;
}

/* The rows of step t: the strengths and the vector as sigmoids, and the output. */
INLINE real *ctrl_compute(const struct ctrl_sequence *s, size_t t, const real *features) {
    const struct ctrl_shape *shape = &s->shape;
    real *rows = s->computed + (t - 1) * ctrl_padded(shape->R);
    ctrl_multiply(shape->C, shape->R, s->weights, s->bias, features, rows);
    for (size_t j = 0; j < shape->bounded; j += LANES)
        store(rows + j, sigmoid(load(rows + j, LANES)), (int)(shape->bounded - j));
    return rows;
}

static int ctrl_forward(const void *given, int64_t number, char *memory) {
    const struct ctrl_call *call = given;
    const struct ctrl_sequence s = ctrl_begin(call, number, 0, memory);
    const size_t T = s.shape.T, K = s.shape.K, R = s.shape.R;
    memset(s.remembered, 0, (T + 1) * K * sizeof(real));
    ctrl_begin_memory(&s.memory);
    if (call->controller == CONTROLLER_LSTM) memset(s.cells, 0, s.shape.h * sizeof(real));
    for (size_t t = 1; t <= T; t++) {
        ctrl_input(call, &s, t);
        const real *rows = ctrl_compute(&s, t, ctrl_control(call, &s, t));
        const real *value = call->pushes_input ? s.remembered + (t - 1) * K : rows + s.shape.strengths;
        if (call->memory != MEMORY_NONE)
            ctrl_step(&s.memory, t, rows[0], rows[1], value, s.remembered + t * K + s.shape.k);
        put_numbers(call->is_double, call->computed, (s.number * T + t - 1) * R, R, rows);
    }
    put_numbers(call->is_double, call->remembered, s.number * (T + 1) * K, (T + 1) * K, s.remembered);
    return 1;
}

/* ---------------------------------------------------------------- backward */

/* Adds the cotangent of [x_{t+1}; r_t; h_t] to its gradient. */
INLINE void ctrl_add_cotangent(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t, real *gradient) {
    const size_t K = s->shape.K, at = (s->number * (s->shape.T + 1) + t) * K;
    for (size_t j = 0; j < K; j++)
        gradient[j] += call->is_double ? ((const real *)call->remembered_gradients)[at + j]
                                       : ((const float *)call->remembered_gradients)[at + j];
}

/* The gradient of the rows of step t before their activations: of the cotangents, and of what the memory and the buffer
 * owe the strengths and the vector. */
INLINE void ctrl_compute_back(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t, const real *of_reading,
                              real of_position) {
    const struct ctrl_shape *shape = &s->shape;
    const size_t at = (s->number * shape->T + t - 1) * shape->R;
    const real *rows = s->computed + (t - 1) * ctrl_padded(shape->R);
    real of_pop = 0, of_push = 0;
    get_numbers(s->of_rows, call->is_double, call->computed_gradients, at, shape->R);
    if (call->memory != MEMORY_NONE) {
        const real *of_item = s->memory.of_items + (t - 1) * shape->m;
        ctrl_step_back(&s->memory, t, rows[0], of_reading, &of_pop, &of_push);
        for (size_t j = shape->strengths; j < shape->bounded; j++) s->of_rows[j] += of_item[j - shape->strengths];
    }
    s->of_rows[0] += of_pop;
    s->of_rows[1] += of_push;
    if (call->is_buffered) s->of_rows[2] += of_position;
    for (size_t j = 0; j < shape->bounded; j++) s->of_rows[j] *= rows[j] * (1 - rows[j]);
    put_numbers(call->is_double, call->row_gradients, at, shape->R, s->of_rows);
}

/* The gradient of [x_t; r_{t-1}; h_{t-1}] from that of the rows of step t, and of h_t by the steps after it. */
INLINE void ctrl_control_back(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t, const real *of_hidden,
                              real *of_last) {
    const struct ctrl_shape *shape = &s->shape;
    const size_t h = shape->h;
    const real *gates = s->gates + (t - 1) * ctrl_padded(shape->P);
    const real *before = s->remembered + (t - 1) * shape->K + shape->first;
    if (call->controller == CONTROLLER_LINEAR) {
        ctrl_multiply(shape->R, shape->C, s->weights, NULL, s->of_rows, of_last);
        return;
    }
    ctrl_multiply(shape->R, shape->C, s->weights, NULL, s->of_rows, s->of_features);
    for (size_t j = 0; j < h; j++) s->of_features[j] += of_hidden[j];
    if (call->controller == CONTROLLER_RNN) ctrl_rnn_back(h, gates, s->of_features, s->of_gates);
    else if (call->controller == CONTROLLER_LSTM)
        rnn_cell_back(h, gates, NULL, s->cells + (t - 1) * h, s->bounded + (t - 1) * h, s->of_features, s->of_cell,
                      s->of_gates);
    else ctrl_gru_back(h, gates, before, s->of_features, s->of_gates, s->of_features);
    put_numbers(call->is_double, call->gate_gradients, (s->number * shape->T + t - 1) * shape->P, shape->P, s->of_gates);
    ctrl_multiply(shape->P, shape->K, s->recurrent, NULL, s->of_gates, of_last);
    if (call->controller == CONTROLLER_GRU)
        for (size_t j = 0; j < h; j++) of_last[shape->first + j] += s->of_features[j];
}

/* Hands the gradient of x_t on to the inputs, whose gradients it adds up; returns the gradient of the position. */
INLINE real ctrl_input_back(const struct ctrl_call *call, const struct ctrl_sequence *s, size_t t, real *of_x) {
    const struct ctrl_shape *shape = &s->shape;
    if (call->pushes_input && call->memory != MEMORY_NONE)
        for (size_t j = 0; j < shape->k; j++) of_x[j] += s->memory.of_items[(t - 1) * shape->m + j];
    if (call->is_buffered)
        return ctrl_look_up_back(s->inputs, shape->n, shape->k, s->positions[t - 1], of_x, s->of_inputs);
    if (t <= shape->n) memcpy(s->of_inputs + (t - 1) * shape->k, of_x, shape->k * sizeof(real));
    return 0;
}

static int ctrl_backward(const void *given, int64_t number, char *memory) {
    const struct ctrl_call *call = given;
    const struct ctrl_sequence s = ctrl_begin(call, number, 1, memory);
    const size_t T = s.shape.T, k = s.shape.k, n = s.shape.n;
    const size_t pushed = call->memory == MEMORY_NONE ? 0 : T;
    real of_position = 0; /* of all positions from step t + 1 on, which is the gradient of i_t */
    ctrl_begin_memory_back(&s.memory, pushed);
    memset(s.of_inputs, 0, n * k * sizeof(real));
    if (call->controller == CONTROLLER_LSTM) memset(s.of_cell, 0, s.shape.h * sizeof(real));
    memset(s.of_remembered[T % 2], 0, s.shape.K * sizeof(real));
    ctrl_add_cotangent(call, &s, T, s.of_remembered[T % 2]);
    for (size_t t = T; t > 0; t--) {
        const real *gradient = s.of_remembered[t % 2];
        real *last = s.of_remembered[1 - t % 2];
        ctrl_compute_back(call, &s, t, gradient + k, of_position);
        ctrl_control_back(call, &s, t, gradient + s.shape.first, last);
        ctrl_add_cotangent(call, &s, t - 1, last);
        of_position += ctrl_input_back(call, &s, t, last);
    }
    put_numbers(call->is_double, call->input_gradients, s.number * n * k, n * k, s.of_inputs);
    return 1;
}

/* Bytes of the record of a sequence, and of the working memory of both passes. */
static void ctrl_sizes(const struct ctrl_call *call, size_t sizes[3]) {
    const struct ctrl_sequence forward = ctrl_lay_out(call, 0, NULL, NULL), backward = ctrl_lay_out(call, 1, NULL, NULL);
    sizes[0] = forward.bytes;
    sizes[1] = forward.scratch_bytes;
    sizes[2] = backward.scratch_bytes;
}
