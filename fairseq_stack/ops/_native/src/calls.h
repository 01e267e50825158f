/* What Python passes to the kernels. */

/* One call of the nondeterministic stack; arrays are contiguous, and of one real type. */
struct nd_call {
    int64_t is_double, sequences, length, num_states, num_symbols;
    const void *push, *replace; /* log weights, (sequences, length, C, C) */
    const void *pop;            /* (sequences, length, C, Q) */
    void *weights;              /* W, (sequences, length, C, length + 1) */
    const void *cotangents;     /* of W */
    void *push_gradients, *replace_gradients, *pop_gradients;
    uint8_t *wide;   /* for each sequence: whether it was computed in double */
    uint8_t *far;    /* for each sequence: whether its log weights are farther apart than double is exact for */
    void *workspace; /* one part for each sequence */
    int64_t workspace_bytes; /* of one part */
};

/* Step t of the nondeterministic stack for a batch of beams, in double; columns as in nondeterministic_step.h. */
struct nd_step_call {
    int64_t beams, step, num_states, num_symbols, value_size;
    int64_t window, kept;       /* D; and the number of the first column that is given */
    const int32_t *ancestors;   /* (beams, step - kept): each beam's place among the columns kept..t - 1 */
    const void *const *columns; /* of the steps kept..t; the last is the new one */
    const void *logits;         /* log weights, (beams, C, 2 C + Q): pushes, replacements, pops; at t = 0, of the
                                   configurations that runs start in, (beams, C), or NULL */
    const void *values;         /* v_t, (beams, value_size) */
    void *readings;             /* (beams, C, value_size) */
    /* backward: */
    void *const *adjoints;  /* of the columns, as in nondeterministic_step_backward.h; NULL for constant ones */
    const void *cotangents; /* of the readings, or NULL */
    void *logit_gradients, *value_gradients;
};

/* One call of the nondeterministic stack with limited memory; arrays as above. */
struct nd_window_call {
    int64_t is_double, sequences, length, num_states, num_symbols, value_size, window;
    const void *logits; /* log weights, (sequences, length, C, 2 C + Q): pushes, replacements, pops */
    const void *values; /* v_0..v_n, (sequences, length + 1, value_size) */
    void *readings;     /* (sequences, length, C, value_size) */
    uint8_t *wide, *far; /* as above */
    void *workspace;     /* the columns of all sequences, one part for each */
    int64_t workspace_bytes;
    /* backward: */
    const void *cotangents; /* of the readings */
    void *logit_gradients, *value_gradients;
};

/* One call of the superposition stack; arrays as for the nondeterministic one. */
struct sup_call {
    int64_t is_double, sequences, length, size;
    const void *actions, *values; /* (sequences, length, 3): push, no-op, pop; and (sequences, length, size) */
    void *readings;
    const void *cotangents; /* of the readings */
    void *action_gradients, *value_gradients;
};

/* A step of the superposition stack for a batch of sequences; arrays as above. */
struct sup_step_call {
    int64_t is_double, sequences, height, next_height, size;
    const void *actions, *values; /* (sequences, 3): push, no-op, pop; and (sequences, size) */
    const void *elements;         /* of the stacks before the step, (sequences, height, size) */
    void *next;                   /* elements after the step, (sequences, next_height, size) */
    uint8_t *undefined;           /* for each sequence: whether some of them are not finite */
    /* backward: */
    const void *next_gradients;
    void *action_gradients, *value_gradients, *element_gradients;
};

/* A step of the stratification stack for a batch of sequences, from `height` items to one more; arrays as above. */
struct strat_step_call {
    int64_t is_double, sequences, height, size;
    int64_t settled;           /* how many items are in one array */
    int64_t followed;          /* how many items autograd follows, v_t among them: the last */
    const void *pops, *pushes; /* (sequences,): u_t and d_t */
    const void *strengths;     /* H before the step, (sequences, height) */
    const void *settled_items; /* (sequences, settled, size) */
    const void *const *items;  /* the others, up to v_t, each (sequences, size) */
    void *next;                /* H after the step, (sequences, height + 1) */
    void *readings;            /* (sequences, size) */
    uint8_t *undefined;        /* for each sequence: whether u_t, d_t or v_t is not finite */
    /* backward: */
    const void *reading_gradients, *next_gradients; /* or NULL */
    void *derivatives;                              /* of the items that autograd follows, (followed, sequences, size) */
    void *strength_gradients, *pop_gradients, *push_gradients;
};
