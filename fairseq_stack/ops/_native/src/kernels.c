/* The stacks on CPUs: what Python calls, and the choice of the instruction set.
 *
 * Every kernel is compiled for each real type and each instruction set that the compiler can produce code for, each of which
 * has a file of its own; which one runs is decided on the machine. A call works through the sequences of a batch with
 * threads of its own.
 */
#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>

/* From the fastest on. */
static const struct instruction_set *const INSTRUCTION_SETS[] = {
#if defined(__x86_64__)
    &fss_avx512,
    &fss_avx2,
#endif
    &fss_baseline,
};
enum { NUM_INSTRUCTION_SETS = sizeof INSTRUCTION_SETS / sizeof *INSTRUCTION_SETS };

static int is_supported(const char *name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!strcmp(name, "avx512"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("fma");
    if (!strcmp(name, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    (void)name;
    return 1;
}

/* The name of instruction set number i, from the fastest on; NULL after the last. */
const char *fss_instruction_set(int i) { return i < NUM_INSTRUCTION_SETS ? INSTRUCTION_SETS[i]->name : NULL; }

/* Whether this machine has instruction set number i. */
int fss_is_supported(int i) { return is_supported(INSTRUCTION_SETS[i]->name); }

/* Bytes of one of its vectors. */
int fss_vector_bytes(int i) { return INSTRUCTION_SETS[i]->vector_bytes; }

/* ---------------------------------------------------------------- threads */

/* Runs work(argument) in so many threads at once, if there can be so many; the signature of GOMP_parallel. */
typedef void team(void (*work)(void *), void *argument, unsigned threads, unsigned flags);
static team *shared_team;

/* Work shall be done by this team, which other libraries in the process use, too: threads that wait for work and
 * threads that work do not take each other's cores then. Without one, threads are started for each call. */
void fss_use_team(team *team) { shared_team = team; }

/* The threads and the memory that a call is computed with. */
struct resources {
    int64_t instruction_set; /* its number */
    int64_t threads;         /* of the team */
    int64_t workers;         /* how many of them work */
    char *scratch;           /* one part for each worker */
    int64_t scratch_bytes;   /* of one part */
};

struct job {
    kernel *const *kernels; /* each computes what the one before it declines */
    const void *call;
    int64_t sequences;
    const struct resources *resources;
    atomic_llong next_sequence, next_worker;
};

static void work(void *argument) {
    struct job *job = argument;
    const int64_t worker = atomic_fetch_add(&job->next_worker, 1);
    if (worker >= job->resources->workers) return;
    char *scratch = job->resources->scratch + worker * job->resources->scratch_bytes;
    const int before = set_small_numbers(1);
    int64_t sequence;
    while ((sequence = atomic_fetch_add(&job->next_sequence, 1)) < job->sequences)
        for (kernel *const *next = job->kernels; !(*next)(job->call, sequence, scratch);) next++;
    restore_small_numbers(before);
}

static void *work_in_thread(void *argument) {
    work(argument);
    return NULL;
}

/* Threads that cannot be started leave their work to the others. */
static void work_in_threads(struct job *job) {
    enum { MOST_THREADS = 256 };
    pthread_t started[MOST_THREADS];
    int count = 0;
    while (count + 1 < job->resources->workers && count < MOST_THREADS &&
           !pthread_create(&started[count], NULL, work_in_thread, job))
        count++;
    work(job);
    while (count > 0) pthread_join(started[--count], NULL);
}

static void run(kernel *const *kernels, const void *call, int64_t sequences, const struct resources *resources) {
    struct job job = {kernels, call, sequences, resources, 0, 0};
    if (resources->threads == 1) work(&job);
    else if (shared_team) shared_team(work, &job, resources->threads, 0);
    else work_in_threads(&job);
}

/* ---------------------------------------------------------------- nondeterministic stack */

/* Bytes of the workspace of one sequence, and of the scratch memory of one worker, forward and backward. */
void fss_nd_sizes(int instruction_set, int is_double, int n, int Q, int S, size_t sizes[3]) {
    const struct instruction_set *set = INSTRUCTION_SETS[instruction_set];
    size_t narrow[3];
    set->nd_sizes[1](n, Q, S, sizes);
    set->nd_sizes[is_double](n, Q, S, narrow);
    for (int i = 0; i < 3; i++)
        if (narrow[i] > sizes[i]) sizes[i] = narrow[i];
}

void fss_nd_forward(const struct nd_call *call, const struct resources *resources) {
    kernel *(*const *forward)(int Q, int S) = INSTRUCTION_SETS[resources->instruction_set]->nd_forward;
    const int Q = call->num_states, S = call->num_symbols;
    kernel *const kernels[] = {forward[0](Q, S), forward[1](Q, S), nd_forward_exact};
    run(kernels + call->is_double, call, call->sequences, resources);
}

void fss_nd_backward(const struct nd_call *call, const struct resources *resources) {
    kernel *(*const *backward)(int Q, int S) = INSTRUCTION_SETS[resources->instruction_set]->nd_backward;
    const int Q = call->num_states, S = call->num_symbols;
    kernel *const kernels[] = {backward[0](Q, S), backward[1](Q, S), nd_backward_exact};
    run(kernels + call->is_double, call, call->sequences, resources);
}

/* Bytes of the column of step t and of its adjoint, for one beam, and of the scratch memory of one worker, forward and
 * backward. Of the call, only the sizes are used. */
void fss_nd_step_sizes(const struct nd_step_call *call, int instruction_set, size_t sizes[4]) {
    INSTRUCTION_SETS[instruction_set]->nd_step_sizes(call, sizes);
}

void fss_nd_step(const struct nd_step_call *call, const struct resources *resources) {
    run(&INSTRUCTION_SETS[resources->instruction_set]->nd_step, call, call->beams, resources);
}

void fss_nd_step_backward(const struct nd_step_call *call, const struct resources *resources) {
    run(&INSTRUCTION_SETS[resources->instruction_set]->nd_step_backward, call, call->beams, resources);
}

/* Bytes of the columns of one sequence, and of the scratch memory of one worker, forward and backward. Of the call, only
 * the sizes are used. */
void fss_nd_window_sizes(const struct nd_window_call *call, int instruction_set, size_t sizes[3]) {
    size_t narrow[3];
    INSTRUCTION_SETS[instruction_set]->nd_window_sizes[1](call, sizes);
    INSTRUCTION_SETS[instruction_set]->nd_window_sizes[call->is_double](call, narrow);
    for (int i = 0; i < 3; i++)
        if (narrow[i] > sizes[i]) sizes[i] = narrow[i];
}

void fss_nd_window_forward(const struct nd_window_call *call, const struct resources *resources) {
    run(INSTRUCTION_SETS[resources->instruction_set]->nd_window_forward + call->is_double, call, call->sequences,
        resources);
}

void fss_nd_window_backward(const struct nd_window_call *call, const struct resources *resources) {
    run(INSTRUCTION_SETS[resources->instruction_set]->nd_window_backward + call->is_double, call, call->sequences,
        resources);
}

/* It needs no scratch memory. */
void fss_nd_best_parts(const struct nd_best_call *call, const struct resources *resources) {
    run(&INSTRUCTION_SETS[resources->instruction_set]->nd_best_parts, call, call->sequences, resources);
}

/* ---------------------------------------------------------------- superposition and stratification stacks */

/* Bytes of the scratch memory of one worker, forward and backward. */
void fss_sup_sizes(int instruction_set, int is_double, int n, int m, size_t sizes[2]) {
    INSTRUCTION_SETS[instruction_set]->sup_sizes[is_double](n, m, sizes);
}

#define CALL(name, type)                                                                                      \
    void fss_##name(const struct type##_call *call, const struct resources *resources) {                      \
        run(INSTRUCTION_SETS[resources->instruction_set]->name + call->is_double, call, call->sequences,      \
            resources);                                                                                       \
    }
CALL(sup_forward, sup)
CALL(sup_backward, sup)

/* A step of the superposition stack needs the memory of a vector for each worker, and one of stratification none. */
CALL(sup_step_forward, sup_step)
CALL(sup_step_backward, sup_step)
CALL(strat_step_forward, strat_step)
CALL(strat_step_backward, strat_step)

/* ---------------------------------------------------------------- LSTM with stacks */

/* Bytes of the record of one sequence, and of the scratch memory of one worker, forward and backward. Of the call, only
 * the sizes are used. */
void fss_rnn_sizes(const struct rnn_call *call, int instruction_set, size_t sizes[3]) {
    size_t narrow[3];
    INSTRUCTION_SETS[instruction_set]->rnn_sizes[1](call, sizes);
    INSTRUCTION_SETS[instruction_set]->rnn_sizes[call->is_double](call, narrow);
    for (int i = 0; i < 3; i++)
        if (narrow[i] > sizes[i]) sizes[i] = narrow[i];
}

static int64_t rnn_blocks(const struct rnn_call *call) { return (call->sequences + call->together - 1) / call->together; }

void fss_rnn_forward(const struct rnn_call *call, const struct resources *resources) {
    run(INSTRUCTION_SETS[resources->instruction_set]->rnn_forward + call->is_double, call, rnn_blocks(call), resources);
}

void fss_rnn_backward(const struct rnn_call *call, const struct resources *resources) {
    run(INSTRUCTION_SETS[resources->instruction_set]->rnn_backward + call->is_double, call, rnn_blocks(call), resources);
}

/* ---------------------------------------------------------------- controllers of neural stacks */

/* As for the LSTM with stacks. */
void fss_ctrl_sizes(const struct ctrl_call *call, int instruction_set, size_t sizes[3]) {
    INSTRUCTION_SETS[instruction_set]->ctrl_sizes(call, sizes);
}

void fss_ctrl_forward(const struct ctrl_call *call, const struct resources *resources) {
    run(&INSTRUCTION_SETS[resources->instruction_set]->ctrl_forward, call, call->sequences, resources);
}

void fss_ctrl_backward(const struct ctrl_call *call, const struct resources *resources) {
    run(&INSTRUCTION_SETS[resources->instruction_set]->ctrl_backward, call, call->sequences, resources);
}

/* Changes whenever what Python calls here does. */
int fss_interface(void) { return 15; }
