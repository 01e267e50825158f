/* What the kernels of all instruction sets share with their caller, kernels.c. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 16")

/* Keeps the compiler from loading a number again for each use. */
#if defined(__x86_64__)
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define IN_REGISTER(x) (void)(x)
#endif

/* Gives an array of a struct room for `count` elements in `memory`, of which `used` bytes are taken. */
#define TAKE(array, count)            \
    array = (void *)(memory + used);  \
    used += ((count) * sizeof(*array) + 63) / 64 * 64;

#include "calls.h"
#include "pieces.h"

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <fenv.h>
#endif

/* From now on, in this thread: numbers below the normal ones count as 0, which is fast (1), or sums and products of
 * positive numbers are positive, whatever their size (0). Returns what to give to `restore_small_numbers`. */
#if defined(__x86_64__)
static __attribute__((noinline, unused)) int set_small_numbers(int are_zero) {
    enum { ARE_ZERO = 0x8040, ROUNDING = 0x6000, UP = 0x4000 };
    const int before = (int)_mm_getcsr();
    _mm_setcsr(are_zero ? before | ARE_ZERO : (before & ~ARE_ZERO & ~ROUNDING) | UP);
    return before;
}
static __attribute__((noinline, unused)) void restore_small_numbers(int before) { _mm_setcsr(before); }
#else
static __attribute__((noinline, unused)) int set_small_numbers(int are_zero) {
    const int before = fegetround();
    if (!are_zero) fesetround(FE_UPWARD);
    return before;
}
static __attribute__((noinline, unused)) void restore_small_numbers(int before) { fesetround(before); }
#endif

/* Computes one sequence; returns 0 if it declines to do so, and another kernel has to. */
typedef int kernel(const void *call, int64_t sequence, char *scratch);

/* What the workers of a sequence do at the same time. */
typedef void shared_work(void *argument);

/* Has all workers of a crew do the work, and returns when each is done with it; without a crew (NULL), the caller does it. */
struct resources;
void share(const struct resources *crew, shared_work *work, void *argument);

/* How many these are. */
int num_workers(const struct resources *crew);

/* The kernels in one real type for one instruction set. */
struct kernels {
    void (*nd_sizes)(int n, int Q, int S, int workers, size_t sizes[3]);
    kernel *nd_forward, *nd_backward;
    void (*nd_window_sizes)(const struct nd_window_call *call, size_t sizes[3]);
    kernel *nd_window_forward, *nd_window_backward;
    void (*sup_sizes)(int n, int m, int limit, size_t sizes[2]);
    kernel *sup_forward, *sup_backward, *sup_step_forward, *sup_step_backward;
    void (*rnn_sizes)(const struct rnn_call *call, size_t sizes[3]);
    kernel *rnn_forward, *rnn_backward;
    kernel *dropout_factors;
    /* only in double: */
    void (*nd_step_sizes)(const struct nd_step_call *call, size_t sizes[4]);
    kernel *nd_step, *nd_step_backward;
    void (*ctrl_sizes)(const struct ctrl_call *call, size_t sizes[3]);
    kernel *ctrl_forward, *ctrl_backward;
};

extern const struct kernels fss_baseline_float, fss_baseline_double;
#if defined(__x86_64__)
extern const struct kernels fss_avx2_float, fss_avx2_double, fss_avx512_float, fss_avx512_double;
#endif
