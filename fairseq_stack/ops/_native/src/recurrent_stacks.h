/* An LSTM with stacks: what drives a stack, and one interface to the kinds of stacks. */

/* ---------------------------------------------------------------- activations */

/* x_i - log sum_j e^x_j, in place. */
INLINE void rnn_log_softmax(real *x, int count) {
    real largest = x[0];
    vector sum = {0};
    for (int i = 1; i < count; i++)
        if (x[i] > largest) largest = x[i];
    for (int i = 0; i < count; i += LANES) {
        const vector own = load_beside(x + i, count - i, splat((real)-INFINITY)) - largest;
        sum += exponential(own);
        store(x + i, own, count - i);
    }
    const real logarithm = sizeof(real) == 4 ? (real)logf((float)lane_sum(sum)) : (real)log((double)lane_sum(sum));
    for (int i = 0; i < count; i++) x[i] -= logarithm;
}

/* The gradient of what such logarithms are made from, in place of that of the logarithms. */
INLINE void rnn_log_softmax_back(const real *logarithms, real *gradient, int count) {
    real sum = 0;
    for (int i = 0; i < count; i++) sum += gradient[i];
    for (int i = 0; i < count; i += LANES) {
        const vector weight = exponential(load(logarithms + i, count - i));
        store(gradient + i, load(gradient + i, count - i) - weight * sum, count - i);
    }
}

INLINE void rnn_softmax(real *x, int count) {
    rnn_log_softmax(x, count);
    for (int i = 0; i < count; i += LANES) store(x + i, exponential(load(x + i, count - i)), count - i);
}

INLINE void rnn_softmax_back(const real *weights, real *gradient, int count) {
    real mean = 0;
    for (int i = 0; i < count; i++) mean += weights[i] * gradient[i];
    for (int i = 0; i < count; i++) gradient[i] = weights[i] * (gradient[i] - mean);
}

/* e^x, for any x. */
INLINE vector rnn_exponential(vector x) {
    const vector e = exponential(-magnitude(x));
    return choose(x > 0, 1 / e, e);
}

/* The pushed vector, in place of its projection. */
INLINE void rnn_activate(const struct rnn_stack *stack, real *values) {
    const int size = (int)stack->value_size;
    if (stack->values == VALUES_SIGMOID)
        for (int i = 0; i < size; i += LANES) store(values + i, sigmoid(load(values + i, size - i)), size - i);
    else if (stack->values == VALUES_TANH)
        for (int i = 0; i < size; i += LANES) store(values + i, hyperbolic_tangent(load(values + i, size - i)), size - i);
    else if (stack->values == VALUES_EXPONENTIAL)
        for (int i = 0; i < size; i += LANES) store(values + i, rnn_exponential(load(values + i, size - i)), size - i);
}

/* The gradient of the projection, in place of that of the pushed vector. */
INLINE void rnn_activate_back(const struct rnn_stack *stack, const real *values, real *gradient) {
    for (int64_t i = 0; i < stack->value_size; i++)
        if (stack->values == VALUES_SIGMOID) gradient[i] *= values[i] * (1 - values[i]);
        else if (stack->values == VALUES_TANH) gradient[i] *= 1 - values[i] * values[i];
        else if (stack->values == VALUES_EXPONENTIAL) gradient[i] *= values[i];
}

/* ---------------------------------------------------------------- stacks */

INLINE int rnn_num_actions(const struct rnn_stack *stack) {
    const int64_t C = stack->num_states * stack->num_symbols;
    if (stack->kind == STACK_AUTOMATON) return (int)(C * (2 * C + stack->num_states));
    return stack->kind == STACK_SUPERPOSITION ? 3 : 2;
}

/* The projections that drive the stack: actions, and then perhaps vectors. */
INLINE int rnn_num_projected(const struct rnn_stack *stack) {
    return rnn_num_actions(stack) + (stack->values <= VALUES_IDENTITY ? (int)stack->value_size : 0);
}

INLINE int rnn_reading_size(const struct rnn_stack *stack) {
    const int64_t of_automaton = stack->num_symbols * (stack->reads_states ? stack->num_states : 1);
    const int64_t tops = stack->kind == STACK_AUTOMATON ? of_automaton : 1;
    return (int)(tops * stack->value_size);
}

/* The size of the vector at the bottom. */
INLINE size_t rnn_bottom_size(const struct rnn_stack *stack) {
    return stack->kind == STACK_AUTOMATON ? stack->value_size : 0;
}

/* A stack in one sequence. */
struct rnn_driven {
    const struct rnn_stack *stack;
    struct rnn_sup sup; /* one of these, by the kind of the stack */
    struct rnn_nd nd;
    struct ctrl_memory strat;
    real *column;   /* of `sup`: after the last step */
    real *of_value; /* room for the gradient of a vector */
};

/* The actions in place of their projections. */
INLINE void rnn_act(const struct rnn_stack *stack, real *actions) {
    const int rows = (int)(stack->num_states * stack->num_symbols);
    if (stack->kind == STACK_SUPERPOSITION) rnn_softmax(actions, 3);
    else if (stack->kind == STACK_STRATIFICATION) store(actions, sigmoid(load(actions, 2)), 2);
    else if (stack->is_normalized)
        for (int row = 0, width = rnn_num_actions(stack) / rows; row < rows; row++)
            rnn_log_softmax(actions + row * width, width);
}

INLINE void rnn_act_back(const struct rnn_stack *stack, const real *actions, real *gradient) {
    const int rows = (int)(stack->num_states * stack->num_symbols);
    if (stack->kind == STACK_SUPERPOSITION) rnn_softmax_back(actions, gradient, 3);
    else if (stack->kind == STACK_STRATIFICATION)
        for (int i = 0; i < 2; i++) gradient[i] *= actions[i] * (1 - actions[i]);
    else if (stack->is_normalized)
        for (int row = 0, width = rnn_num_actions(stack) / rows; row < rows; row++)
            rnn_log_softmax_back(actions + row * width, gradient + row * width, width);
}

INLINE const real *rnn_pushed(const struct rnn_driven *d, const real *driving, const real *hidden) {
    if (d->stack->values == VALUES_HIDDEN) return hidden;
    return d->stack->values == VALUES_ONES ? d->nd.ones : driving + rnn_num_actions(d->stack);
}

INLINE void rnn_begin_stack(struct rnn_driven *d, const real *bottom) {
    if (d->stack->kind == STACK_AUTOMATON) rnn_nd_begin(&d->nd, bottom);
    else if (d->stack->kind == STACK_STRATIFICATION) ctrl_begin_memory(&d->strat);
    else {
        d->column = d->sup.columns;
        rnn_sup_end(&d->sup, d->column, 0);
    }
}

/* Step t, driven by projections of the hidden state, which become actions and a vector. Returns 0 if float is not precise
 * enough. */
INLINE int rnn_step_stack(struct rnn_driven *d, int64_t t, real *driving, const real *hidden, real *reading) {
    const struct rnn_stack *stack = d->stack;
    rnn_act(stack, driving);
    if (stack->values <= VALUES_IDENTITY) rnn_activate(stack, driving + rnn_num_actions(stack));
    const real *value = rnn_pushed(d, driving, hidden);
    if (stack->kind == STACK_AUTOMATON) return rnn_nd_step(&d->nd, t, driving, value, reading);
    if (stack->kind == STACK_STRATIFICATION) ctrl_step(&d->strat, t, driving[0], driving[1], value, reading);
    else d->column = rnn_sup_step(&d->sup, t, d->column, driving, value, reading);
    return 1;
}

/* Before the first step of the backward pass over n steps. */
INLINE void rnn_begin_stack_back(struct rnn_driven *d, int64_t n) {
    if (d->stack->kind == STACK_AUTOMATON) rnn_nd_begin_back(&d->nd);
    else if (d->stack->kind == STACK_STRATIFICATION) ctrl_begin_memory_back(&d->strat, n - 1);
    else {
        rnn_sup_begin_back(&d->sup);
        d->column = d->sup.columns;
        for (int64_t t = 0; t < n - 1; t++) d->column += rnn_sup_size(d->stack, n, t);
    }
}

/* The gradients of the projections, given the actions and the vector that they became; and what is added to the gradient
 * of the hidden state otherwise. */
INLINE void rnn_step_stack_back(struct rnn_driven *d, int64_t t, const real *driving, const real *cotangent,
                                real *gradient, real *of_hidden) {
    const struct rnn_stack *stack = d->stack;
    const int num_actions = rnn_num_actions(stack);
    if (stack->kind == STACK_AUTOMATON) rnn_nd_step_back(&d->nd, t, cotangent, gradient, d->of_value);
    else if (stack->kind == STACK_STRATIFICATION) {
        ctrl_step_back(&d->strat, t, driving[0], cotangent, &gradient[0], &gradient[1]);
        memcpy(d->of_value, d->strat.of_items + (t - 1) * stack->value_size, stack->value_size * sizeof(real));
    } else d->column = rnn_sup_step_back(&d->sup, t, d->column, driving, cotangent, gradient, d->of_value);
    rnn_act_back(stack, driving, gradient);
    if (stack->values == VALUES_HIDDEN)
        for (int64_t i = 0; i < stack->value_size; i++) of_hidden[i] += d->of_value[i];
    if (stack->values > VALUES_IDENTITY) return;
    memcpy(gradient + num_actions, d->of_value, stack->value_size * sizeof(real));
    rnn_activate_back(stack, driving + num_actions, gradient + num_actions);
}
