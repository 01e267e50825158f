/* The kernels in double for any processor. */
#define KERNELS fss_baseline_double
#define IS_DOUBLE 1
#define VECTOR_BYTES 16
#include "all_kernels.h"
