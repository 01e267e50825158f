/* What Python passes to the kernels. */

/* The threads and the memory that a call is computed with. */
struct resources {
    int64_t instruction_set; /* its number */
    int64_t threads;         /* of the team */
    int64_t workers;         /* how many of them work */
    int64_t are_crew;        /* whether all workers compute one sequence after the other; else each computes its own */
    char *scratch;           /* one part for each worker, or one for the crew */
    int64_t scratch_bytes;   /* of one part */
};

/* One call of the nondeterministic stack; arrays are contiguous, and of one real type. */
struct nd_call {
    int64_t is_double, sequences, length, num_states, num_symbols;
    const void *logits;     /* log weights, (sequences, length, C, 2 C + Q): pushes, replacements, pops */
    void *weights;          /* W, (sequences, length, C, length + 1) */
    const void *cotangents; /* of W */
    void *logit_gradients;
    uint8_t *wide;    /* for each sequence: whether float is not precise enough; 0 before the forward pass */
    uint8_t *inexact; /* for each sequence: whether double is not precise enough, and nothing is computed; likewise */
    void *workspace;  /* one part for each sequence */
    int64_t workspace_bytes; /* of one part */
    const struct resources *crew; /* whose workers share each sequence; NULL if each computes its own. Python has NULL */
};

/* Step t of the nondeterministic stack for a batch of beams, in double; columns as in nondeterministic_step_columns.h. */
struct nd_step_call {
    int64_t beams, step, num_states, num_symbols, value_size;
    int64_t window, kept;       /* D; and the number of the first column that is given */
    const int32_t *ancestors;   /* (beams, step - kept): each beam's place among the columns kept..t - 1 */
    const void *const *columns; /* of the steps kept..t; the last is the new one */
    const void *logits;         /* log weights, (beams, C, 2 C + Q): pushes, replacements, pops; at t = 0, of the
                                   configurations that runs start in, (beams, C), or NULL */
    const void *values;         /* v_t, (beams, value_size) */
    void *readings;             /* (beams, C, value_size) */
    uint8_t *inexact;           /* for each beam: whether double is not precise enough for the step */
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
    uint8_t *wide, *inexact; /* as above */
    void *workspace;         /* the columns of all sequences, one part for each */
    int64_t workspace_bytes;
    /* backward: */
    const void *cotangents; /* of the readings */
    void *logit_gradients, *value_gradients;
};

/* One call of the superposition stack; arrays as for the nondeterministic one. */
struct sup_call {
    int64_t is_double, sequences, length, size;
    int64_t depth_limit; /* how many elements a stack holds; the length if there is no limit */
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

/* What a controller's stack pushes: a function of a projection of the hidden state, or else the hidden state itself, or a
 * vector of ones. */
enum { VALUES_SIGMOID, VALUES_EXPONENTIAL, VALUES_TANH, VALUES_IDENTITY, VALUES_HIDDEN, VALUES_ONES };

/* The stacks that an LSTM drives. */
enum { STACK_SUPERPOSITION, STACK_STRATIFICATION, STACK_AUTOMATON };

struct rnn_stack {
    int64_t kind, value_size, values; /* of these, only automata have states and symbols */
    int64_t limit; /* the depth of superposition, D of the automaton, or a number that nothing exceeds */
    int64_t num_states, num_symbols, is_normalized, has_original_bottom, reads_states;
};

/* One call of an LSTM with stacks; arrays as for the nondeterministic stack. With H hidden units, R components of all
 * readings, K = R + H and P projections that drive the stacks: */
struct rnn_call {
    int64_t is_double, sequences, together; /* as many sequences advance together */
    int64_t length, hidden_size, num_stacks;
    const struct rnn_stack *stacks;
    const void *gates;     /* the input's part, (sequences, length, 4 H) */
    const void *kept;      /* factors of the candidates, (sequences, length, H), or NULL */
    const void *recurrent; /* (K, 4 H); backward (4 H, K) */
    const void *driving;   /* (H, P); backward (P, H) */
    const void *bias;      /* (P) */
    const void *reading;   /* r_0, (R) */
    const void *bottoms;   /* v_0 of all automata */
    void *remembered;      /* [r_{t-1}; h_{t-1}], (sequences, length, K) */
    void *outputs;         /* h_t, (sequences, length, H) */
    uint8_t *wide, *inexact; /* as above */
    void *workspace;
    int64_t workspace_bytes;
    /* backward: */
    const void *cotangents; /* of the outputs */
    void *gate_gradients, *projection_gradients;  /* the second (sequences, length, P) */
    void *reading_gradients, *bottom_gradients; /* of each sequence */
};

/* The controllers of neural stacks, and what they drive. */
enum { CONTROLLER_LINEAR, CONTROLLER_RNN, CONTROLLER_LSTM, CONTROLLER_GRU };
enum { MEMORY_STACK, MEMORY_QUEUE, MEMORY_NONE };

/* One call of a neural stack; arrays as for the nondeterministic stack. With inputs of size k, vectors of size m, h hidden
 * units, K = k + m + h, P gates, R rows, and C features of the linear layer: */
struct ctrl_call {
    int64_t is_double, sequences;
    int64_t length, steps, input_size, vector_size, hidden_size, rows;
    int64_t controller, memory, pushes_input, is_buffered;
    const void *inputs;         /* (sequences, length, k) */
    const void *recurrent;      /* (K, P); backward (P, K) */
    const void *recurrent_bias; /* (P) */
    const void *weights;        /* (C, R); backward (R, C) */
    const void *bias;           /* (R) */
    void *computed;             /* the rows, (sequences, steps, R) */
    void *remembered;           /* [x_{t+1}; r_t; h_t] from t = 0 on, (sequences, steps + 1, K) */
    void *workspace;
    int64_t workspace_bytes;
    /* backward: */
    const void *computed_gradients, *remembered_gradients;
    void *input_gradients, *gate_gradients, *row_gradients; /* (.., k) of the inputs, (.., P) and (.., R) of the steps */
};

#define DROPOUT_BLOCK 16384

/* The factors of dropout, in blocks of DROPOUT_BLOCK. */
struct dropout_call {
    int64_t is_double, count;
    int64_t seed;
    int64_t limit;      /* p 2^32 */
    double probability; /* p */
    void *factors;      /* (count,) */
};
