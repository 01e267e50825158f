/* All kernels in float and double, for the VECTOR_BYTES and the SUFFIX of one instruction set. */
#define JOIN(x, type, suffix) x##_##type##_##suffix
#define NAME_WITH(x, type, suffix) JOIN(x, type, suffix)

#define REAL float
#define INTEGER int32_t
#define NAME(x) NAME_WITH(x, float, SUFFIX)
#include "vector.h"
#include "micro_kernels.h"
#include "nondeterministic_record.h"
#include "nondeterministic_forward.h"
#include "nondeterministic_backward.h"
#include "nondeterministic_passes.h"
#include "nondeterministic.h"
#include "nondeterministic_step_columns.h"
#include "nondeterministic_step.h"
#include "nondeterministic_step_backward.h"
#include "nondeterministic_window.h"
#include "superposition_products.h"
#include "superposition_steps.h"
#include "superposition.h"
#include "superposition_state.h"
#include "stratification_step.h"
#include "recurrent_products.h"
#include "recurrent_superposition.h"
#include "recurrent_automaton.h"
#include "recurrent_stacks.h"
#include "recurrent_sequence.h"
#include "recurrent.h"
#undef REAL
#undef INTEGER
#undef NAME

#define REAL double
#define INTEGER int64_t
#define NAME(x) NAME_WITH(x, double, SUFFIX)
#include "vector.h"
#include "micro_kernels.h"
#include "nondeterministic_record.h"
#include "nondeterministic_forward.h"
#include "nondeterministic_backward.h"
#include "nondeterministic_passes.h"
#include "nondeterministic.h"
#include "nondeterministic_step_columns.h"
#include "nondeterministic_step.h"
#include "nondeterministic_step_backward.h"
#include "nondeterministic_window.h"
#include "nondeterministic_beams.h"
#include "nondeterministic_best_parts.h"
#include "superposition_products.h"
#include "superposition_steps.h"
#include "superposition.h"
#include "superposition_state.h"
#include "stratification_step.h"
#include "recurrent_products.h"
#include "recurrent_superposition.h"
#include "recurrent_automaton.h"
#include "recurrent_stacks.h"
#include "recurrent_sequence.h"
#include "recurrent.h"
#include "controller_memory.h"
#include "controller_cells.h"
#include "controller_sequence.h"
#include "controller.h"
#undef REAL
#undef INTEGER
#undef NAME

#undef JOIN
#undef NAME_WITH
