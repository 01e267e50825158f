/* The kernels in float for processors with AVX-512. */
#define KERNELS fss_avx512_float
#define IS_DOUBLE 0
#define VECTOR_BYTES 64
#include "all_kernels.h"
