/* The kernels in double for processors with AVX-512. */
#define KERNELS fss_avx512_double
#define IS_DOUBLE 1
#define VECTOR_BYTES 64
#include "all_kernels.h"
