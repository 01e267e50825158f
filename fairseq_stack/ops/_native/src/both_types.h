/* All kernels in float and double, for the VECTOR_BYTES and the SUFFIX of one instruction set. */
#define JOIN(x, type, suffix) x##_##type##_##suffix
#define NAME_WITH(x, type, suffix) JOIN(x, type, suffix)

#define REAL float
#define INTEGER int32_t
#define NAME(x) NAME_WITH(x, float, SUFFIX)
#include "one_type.h"
#undef REAL
#undef INTEGER
#undef NAME

#define REAL double
#define INTEGER int64_t
#define NAME(x) NAME_WITH(x, double, SUFFIX)
#include "one_type.h"
/* Only in double. */
#include "nondeterministic_beams.h"
#include "controller_memory.h"
#include "controller_cells.h"
#include "controller_sequence.h"
#include "controller.h"
#undef REAL
#undef INTEGER
#undef NAME

#undef JOIN
#undef NAME_WITH
