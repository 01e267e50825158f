/* All kernels in one real type for one instruction set. The file that includes this one defines:
 *
 *   KERNELS         the name of their table
 *   IS_DOUBLE       0 for float, 1 for double
 *   VECTOR_BYTES    16, 32 (AVX2) or 64 (AVX-512)
 */
#include "kernels.h"

#if VECTOR_BYTES == 16 || defined(__x86_64__)
#if defined(__clang__) && VECTOR_BYTES == 32
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#elif defined(__clang__) && VECTOR_BYTES == 64
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))), apply_to = function)
#elif VECTOR_BYTES == 32
#pragma GCC target("avx2,fma")
#elif VECTOR_BYTES == 64
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#endif

#include "vector.h"
#include "micro_kernels.h"
#include "nondeterministic_record.h"
#include "nondeterministic_equations.h"
#include "nondeterministic_forward.h"
#include "nondeterministic_backward.h"
#include "nondeterministic.h"
#include "nondeterministic_step_columns.h"
#include "nondeterministic_step.h"
#include "nondeterministic_step_backward.h"
#include "nondeterministic_window.h"
#include "superposition_products.h"
#include "superposition_steps.h"
#include "superposition.h"
#include "superposition_state.h"
#include "recurrent_products.h"
#include "recurrent_superposition.h"
#include "recurrent_automaton.h"
#include "controller_memory.h"
#include "recurrent_stacks.h"
#include "recurrent_sequence.h"
#include "recurrent.h"
#include "dropout.h"
#if IS_DOUBLE
#include "nondeterministic_beams.h"
#include "controller_buffer.h"
#include "controller_cells.h"
#include "controller_sequence.h"
#include "controller.h"
#endif

#if defined(__clang__) && VECTOR_BYTES > 16
#pragma clang attribute pop
#endif

const struct kernels KERNELS = {
    .nd_sizes = nd_sizes, .nd_forward = nd_forward, .nd_backward = nd_backward,
    .nd_window_sizes = nd_window_sizes, .nd_window_forward = nd_window_forward,
    .nd_window_backward = nd_window_backward,
    .sup_sizes = sup_sizes, .sup_forward = sup_forward, .sup_backward = sup_backward,
    .sup_step_forward = sup_step_forward, .sup_step_backward = sup_step_backward,
    .rnn_sizes = rnn_sizes, .rnn_forward = rnn_forward, .rnn_backward = rnn_backward,
    .dropout_factors = dropout_factors,
#if IS_DOUBLE
    .nd_step_sizes = nd_step_sizes, .nd_step = nd_step, .nd_step_backward = nd_step_backward,
    .ctrl_sizes = ctrl_sizes, .ctrl_forward = ctrl_forward, .ctrl_backward = ctrl_backward,
#endif
};
#endif
