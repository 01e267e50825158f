/* The kernels in float for any processor. */
#define KERNELS fss_baseline_float
#define IS_DOUBLE 0
#define VECTOR_BYTES 16
#include "all_kernels.h"
