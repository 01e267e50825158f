/* The kernels for any processor. */
#include "kernels.h"

#define VECTOR_BYTES 16
#define SUFFIX baseline
#include "both_types.h"

const struct instruction_set fss_baseline = INSTRUCTION_SET("baseline", baseline);
