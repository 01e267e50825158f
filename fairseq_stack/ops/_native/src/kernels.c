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

/* Threads that cannot be started leave their work to the others. */
static void start_threads(void *(*work)(void *), void *argument, int64_t threads) {
    enum { MOST_THREADS = 256 };
    pthread_t started[MOST_THREADS];
    int count = 0;
    while (count + 1 < threads && count < MOST_THREADS && !pthread_create(&started[count], NULL, work, argument)) count++;
    work(argument);
    while (count > 0) pthread_join(started[--count], NULL);
}

struct job {
    void (*work)(void *job, int64_t worker);
    int64_t workers;
    atomic_llong next_worker;
};

static void work(void *argument) {
    struct job *job = argument;
    const int64_t worker = atomic_fetch_add(&job->next_worker, 1);
    if (worker >= job->workers) return;
    const int before = set_small_numbers(1);
    job->work(job, worker);
    restore_small_numbers(before);
}

static void *work_in_thread(void *argument) {
    work(argument);
    return NULL;
}

static void run_job(struct job *job, int64_t threads) {
    if (threads == 1) work(job);
    else if (shared_team) shared_team(work, job, threads, 0);
    else start_threads(work_in_thread, job, job->workers);
}

/* ---- each worker computes sequences of its own */

struct sequences {
    struct job job;
    kernel *const *kernels; /* each computes what the one before it declines */
    const void *call;
    int64_t count;
    const struct resources *resources;
    atomic_llong next;
};

static void compute(kernel *const *kernels, const void *call, int64_t sequence, char *scratch) {
    while (!(*kernels)(call, sequence, scratch)) kernels++;
}

static void compute_sequences(void *argument, int64_t worker) {
    struct sequences *all = argument;
    char *scratch = all->resources->scratch + worker * all->resources->scratch_bytes;
    int64_t sequence;
    while ((sequence = atomic_fetch_add(&all->next, 1)) < all->count)
        compute(all->kernels, all->call, sequence, scratch);
}

static void run(kernel *const *kernels, const void *call, int64_t count, const struct resources *resources) {
    struct sequences all = {{compute_sequences, resources->workers, 0}, kernels, call, count, resources, 0};
    run_job(&all.job, resources->threads);
}

/* ---- all workers compute one sequence */

struct shared {
    struct job job;
    shared_work *work;
    void *argument;
};

static void do_share(void *argument, int64_t worker) {
    const struct shared *shared = argument;
    (void)worker;
    shared->work(shared->argument);
}

void share(const struct resources *crew, shared_work *work, void *argument) {
    struct shared shared = {{do_share, num_workers(crew), 0}, work, argument};
    if (crew) run_job(&shared.job, crew->threads);
    else work(argument);
}

int num_workers(const struct resources *crew) { return crew ? crew->workers : 1; }

/* ---------------------------------------------------------------- nondeterministic stack */

/* Bytes of the workspace of one sequence, and of one part of the scratch memory, forward and backward, for a sequence that
 * so many workers share. */
void fss_nd_sizes(int instruction_set, int is_double, int n, int Q, int S, int workers, size_t sizes[3]) {
    const struct instruction_set *set = INSTRUCTION_SETS[instruction_set];
    size_t narrow[3];
    set->nd_sizes[1](n, Q, S, workers, sizes);
    set->nd_sizes[is_double](n, Q, S, workers, narrow);
    for (int i = 0; i < 3; i++)
        if (narrow[i] > sizes[i]) sizes[i] = narrow[i];
}

static void run_nd(kernel *const *kernels, const struct nd_call *call, const struct resources *resources) {
    if (!resources->are_crew) {
        run(kernels, call, call->sequences, resources);
        return;
    }
    struct nd_call shared = *call;
    shared.crew = resources;
    const int before = set_small_numbers(1);
    for (int64_t sequence = 0; sequence < call->sequences; sequence++)
        compute(kernels, &shared, sequence, resources->scratch);
    restore_small_numbers(before);
}

void fss_nd_forward(const struct nd_call *call, const struct resources *resources) {
    kernel *const *forward = INSTRUCTION_SETS[resources->instruction_set]->nd_forward;
    kernel *const kernels[] = {forward[0], forward[1], nd_forward_exact};
    run_nd(kernels + call->is_double, call, resources);
}

void fss_nd_backward(const struct nd_call *call, const struct resources *resources) {
    kernel *const *backward = INSTRUCTION_SETS[resources->instruction_set]->nd_backward;
    kernel *const kernels[] = {backward[0], backward[1], nd_backward_exact};
    run_nd(kernels + call->is_double, call, resources);
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

/* ---------------------------------------------------------------- superposition and stratification stacks */

/* Bytes of the scratch memory of one worker, forward and backward. */
void fss_sup_sizes(int instruction_set, int is_double, int n, int m, int limit, size_t sizes[2]) {
    INSTRUCTION_SETS[instruction_set]->sup_sizes[is_double](n, m, limit, sizes);
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
int fss_interface(void) { return 17; }
