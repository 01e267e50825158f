/* The kernels in float for processors with AVX2. */
#define KERNELS fss_avx2_float
#define IS_DOUBLE 0
#define VECTOR_BYTES 32
#include "all_kernels.h"
