/* The kernels for processors with AVX2. */
#include "kernels.h"

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define VECTOR_BYTES 32
#define SUFFIX avx2
#include "both_types.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

const struct instruction_set fss_avx2 = INSTRUCTION_SET("avx2", avx2);
#endif
