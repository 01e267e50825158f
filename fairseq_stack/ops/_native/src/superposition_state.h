/* The superposition stack one step at a time: the elements of one sequence, from the top down (Eq. 5).
 *
 * What the stack before the step lacks is 0. The stack after the step has one element more, unless its depth is limited.
 */

/* Element d of the stack before the step (Eqs. 5-8), with v_t at -1 and zeros below the last. */
INLINE const real *sup_element(const struct sup_step_call *call, int64_t sequence, int64_t d, const real *zeros) {
    if (d < 0) return (const real *)call->values + sequence * call->size;
    if (d >= call->height) return zeros;
    return (const real *)call->elements + (sequence * call->height + d) * call->size;
}

/* Notes in `undefined` whether a number of the next stack is not finite. */
static int sup_step_forward(const void *given, int64_t sequence, char *memory) {
    const struct sup_step_call *call = given;
    const real *actions = (const real *)call->actions + sequence * 3, *zeros = (const real *)memory;
    const real push = actions[0], noop = actions[1], pop = actions[2];
    real rest = 0;
    if (call->size) memset(memory, 0, call->size * sizeof(real));
    for (int64_t d = 0; d < call->next_height; d++) {
        const real *above = sup_element(call, sequence, d - 1, zeros), *at = sup_element(call, sequence, d, zeros);
        const real *below = sup_element(call, sequence, d + 1, zeros);
        real *next = (real *)call->next + (sequence * call->next_height + d) * call->size;
        for (int64_t m = 0; m < call->size; m++) next[m] = push * above[m] + noop * at[m] + pop * below[m];
        for (int64_t m = 0; m < call->size; m++) rest += next[m] - next[m]; /* 0, or else NaN */
    }
    call->undefined[sequence] = !(rest == 0);
    return 1;
}

static int sup_step_backward(const void *given, int64_t sequence, char *memory) {
    const struct sup_step_call *call = given;
    const int64_t size = call->size;
    const real *actions = (const real *)call->actions + sequence * 3, *zeros = (const real *)memory;
    const real push = actions[0], noop = actions[1], pop = actions[2];
    real *of_actions = (real *)call->action_gradients + sequence * 3;
    if (size) memset(memory, 0, size * sizeof(real));
    for (int action = 0; action < 3; action++) of_actions[action] = 0;
    for (int64_t d = 0; d < call->next_height; d++) {
        const real *gradient = (const real *)call->next_gradients + (sequence * call->next_height + d) * size;
        for (int action = 0; action < 3; action++) {
            const real *element = sup_element(call, sequence, d - 1 + action, zeros);
            real sum = 0;
            for (int64_t m = 0; m < size; m++) sum += gradient[m] * element[m];
            of_actions[action] += sum;
        }
    }
    const real *gradients = (const real *)call->next_gradients + sequence * call->next_height * size;
    for (int64_t d = -1; d < call->height; d++) {
        const real *pushed = d + 1 < call->next_height ? gradients + (d + 1) * size : zeros;
        const real *kept = d >= 0 && d < call->next_height ? gradients + d * size : zeros;
        const real *popped = d >= 1 && d - 1 < call->next_height ? gradients + (d - 1) * size : zeros;
        real *to = d < 0 ? (real *)call->value_gradients + sequence * size
                         : (real *)call->element_gradients + (sequence * call->height + d) * size;
        for (int64_t m = 0; m < size; m++) to[m] = push * pushed[m] + noop * kept[m] + pop * popped[m];
    }
    return 1;
}
