/* The stacks on CPUs: what Python calls, and the choice of the instruction set.
 *
 * Every kernel is compiled for each real type and each instruction set that the compiler can produce code for, each of which
 * has a file of its own; which one runs is decided on the machine. A call works through the sequences of a batch with
 * PyTorch's threads, or with threads of its own where there are none.
 */
#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>

/* From the fastest on: the kernels in float and in double. */
static const struct instruction_set {
    const char *name;
    int vector_bytes;
    const struct kernels *kernels[2];
} INSTRUCTION_SETS[] = {
#if defined(__x86_64__)
    {"avx512", 64, {&fss_avx512_float, &fss_avx512_double}},
    {"avx2", 32, {&fss_avx2_float, &fss_avx2_double}},
#endif
    {"baseline", 16, {&fss_baseline_float, &fss_baseline_double}},
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
const char *fss_instruction_set(int i) { return i < NUM_INSTRUCTION_SETS ? INSTRUCTION_SETS[i].name : NULL; }

/* Whether this machine has instruction set number i. */
int fss_is_supported(int i) { return is_supported(INSTRUCTION_SETS[i].name); }

/* Bytes of one of its vectors. */
int fss_vector_bytes(int i) { return INSTRUCTION_SETS[i].vector_bytes; }

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

/* ---------------------------------------------------------------- calls
 *
 * NAME_sizes gives bytes: of what the forward pass leaves to the backward pass, for one sequence, and of the scratch memory
 * of one worker, forward and backward. Of the call, only the sizes are used. */

/* Sizes that suffice for double, to which float leaves sequences, and for the type of the call. */
#define SIZES(is_double, name, ...)                                                         \
    const struct kernels *const *of_type = INSTRUCTION_SETS[instruction_set].kernels;       \
    size_t narrow[3];                                                                       \
    of_type[1]->name(__VA_ARGS__, sizes);                                                   \
    of_type[is_double]->name(__VA_ARGS__, narrow);                                          \
    for (int i = 0; i < 3; i++)                                                             \
        if (narrow[i] > sizes[i]) sizes[i] = narrow[i];

/* Computes so many sequences of a call, in float unless they are in double; double computes what float declines. */
#define CALL(name, type, is_double, run, count)                                                  \
    void fss_##name(const struct type##_call *call, const struct resources *resources) {         \
        const struct kernels *const *of_type = INSTRUCTION_SETS[resources->instruction_set].kernels; \
        kernel *const kernels[] = {of_type[0]->name, of_type[1]->name};                          \
        run(kernels + (is_double), call, count, resources);                                      \
    }

void fss_nd_sizes(int instruction_set, int is_double, int n, int Q, int S, int workers, size_t sizes[3]) {
    SIZES(is_double, nd_sizes, n, Q, S, workers)
}

/* As `run`, but the workers may be a crew. */
static void run_nd(kernel *const *kernels, const struct nd_call *call, int64_t count, const struct resources *resources) {
    if (!resources->are_crew) {
        run(kernels, call, count, resources);
        return;
    }
    struct nd_call shared = *call;
    shared.crew = resources;
    const int before = set_small_numbers(1);
    for (int64_t sequence = 0; sequence < count; sequence++) compute(kernels, &shared, sequence, resources->scratch);
    restore_small_numbers(before);
}
CALL(nd_forward, nd, call->is_double, run_nd, call->sequences)
CALL(nd_backward, nd, call->is_double, run_nd, call->sequences)

/* Bytes of the column of step t and of its adjoint, for one beam; and of scratch memory. */
void fss_nd_step_sizes(const struct nd_step_call *call, int instruction_set, size_t sizes[4]) {
    INSTRUCTION_SETS[instruction_set].kernels[1]->nd_step_sizes(call, sizes);
}
CALL(nd_step, nd_step, 1, run, call->beams)
CALL(nd_step_backward, nd_step, 1, run, call->beams)

void fss_nd_window_sizes(const struct nd_window_call *call, int instruction_set, size_t sizes[3]) {
    SIZES(call->is_double, nd_window_sizes, call)
}
CALL(nd_window_forward, nd_window, call->is_double, run, call->sequences)
CALL(nd_window_backward, nd_window, call->is_double, run, call->sequences)

/* Bytes of scratch memory alone. */
void fss_sup_sizes(int instruction_set, int is_double, int n, int m, int limit, size_t sizes[2]) {
    INSTRUCTION_SETS[instruction_set].kernels[is_double]->sup_sizes(n, m, limit, sizes);
}
CALL(sup_forward, sup, call->is_double, run, call->sequences)
CALL(sup_backward, sup, call->is_double, run, call->sequences)

/* A step needs the memory of a vector for each worker. */
CALL(sup_step_forward, sup_step, call->is_double, run, call->sequences)
CALL(sup_step_backward, sup_step, call->is_double, run, call->sequences)

void fss_rnn_sizes(const struct rnn_call *call, int instruction_set, size_t sizes[3]) {
    SIZES(call->is_double, rnn_sizes, call)
}
static int64_t rnn_blocks(const struct rnn_call *call) { return (call->sequences + call->together - 1) / call->together; }
CALL(rnn_forward, rnn, call->is_double, run, rnn_blocks(call))
CALL(rnn_backward, rnn, call->is_double, run, rnn_blocks(call))

static int64_t dropout_blocks(const struct dropout_call *call) { return (call->count + DROPOUT_BLOCK - 1) / DROPOUT_BLOCK; }
CALL(dropout_factors, dropout, call->is_double, run, dropout_blocks(call))

/* Controllers of neural stacks: only in double, as steps of the nondeterministic stack. */
void fss_ctrl_sizes(const struct ctrl_call *call, int instruction_set, size_t sizes[3]) {
    INSTRUCTION_SETS[instruction_set].kernels[1]->ctrl_sizes(call, sizes);
}
CALL(ctrl_forward, ctrl, 1, run, call->sequences)
CALL(ctrl_backward, ctrl, 1, run, call->sequences)

/* Changes whenever what Python calls here does. */
int fss_interface(void) { return 24; }
