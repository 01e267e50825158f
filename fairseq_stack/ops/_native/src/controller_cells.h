/* The recurrent cells of controllers, beside the LSTM's, which is rnn_cell: the gates are in place of what they are before
 * their activations.
 */

/* h_t of a simple RNN with the hyperbolic tangent. */
static void ctrl_rnn(int h, real *gates, real *hidden) {
    for (int j = 0; j < h; j += LANES) {
        const vector bounded = hyperbolic_tangent(load(gates + j, h - j));
        store(gates + j, bounded, h - j);
        store(hidden + j, bounded, h - j);
    }
}

static void ctrl_rnn_back(int h, const real *gates, const real *of_hidden, real *of_gates) {
    for (int j = 0; j < h; j++) of_gates[j] = of_hidden[j] * (1 - gates[j] * gates[j]);
}

/* h_t of a GRU. Its gates are reset, update and candidate, the last in two parts: what the input contributes, which the
 * candidate replaces, and what the hidden state does, which the reset gate multiplies. */
static void ctrl_gru(int h, real *gates, const real *before, real *hidden) {
    for (int j = 0; j < h; j += LANES) {
        const int count = h - j;
        const vector reset = sigmoid(load(gates + j, count)), update = sigmoid(load(gates + h + j, count));
        const vector own = load(gates + 2 * h + j, count), last = load(gates + 3 * h + j, count);
        const vector candidate = hyperbolic_tangent(own + reset * last), old = load(before + j, count);
        store(gates + j, reset, count);
        store(gates + h + j, update, count);
        store(gates + 2 * h + j, candidate, count);
        store(hidden + j, candidate + update * (old - candidate), count);
    }
}

/* Puts into `of_before` what does not pass through the gates. */
static void ctrl_gru_back(int h, const real *gates, const real *before, const real *of_hidden, real *of_gates,
                          real *of_before) {
    for (int j = 0; j < h; j++) {
        const real reset = gates[j], update = gates[h + j], candidate = gates[2 * h + j], last = gates[3 * h + j];
        const real of_candidate = of_hidden[j] * (1 - update) * (1 - candidate * candidate);
        of_gates[j] = of_candidate * last * reset * (1 - reset);
        of_gates[h + j] = of_hidden[j] * (before[j] - candidate) * update * (1 - update);
        of_gates[2 * h + j] = of_candidate;
        of_gates[3 * h + j] = of_candidate * reset;
        of_before[j] = of_hidden[j] * update;
    }
}
