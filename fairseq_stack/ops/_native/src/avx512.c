/* The kernels for processors with AVX-512. */
#include "kernels.h"

#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,fma")
#endif
#define VECTOR_BYTES 64
#define SUFFIX avx512
#include "both_types.h"
#ifdef __clang__
#pragma clang attribute pop
#endif

const struct instruction_set fss_avx512 = INSTRUCTION_SET("avx512", avx512);
#endif
