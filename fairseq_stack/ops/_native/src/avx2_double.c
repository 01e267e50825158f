/* The kernels in double for processors with AVX2. */
#define KERNELS fss_avx2_double
#define IS_DOUBLE 1
#define VECTOR_BYTES 32
#include "all_kernels.h"
