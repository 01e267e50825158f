/* Vectors of one real type for one instruction set: see all_kernels.h.
 *
 * Only the vector extensions that GCC and Clang share are used, so that the same source serves every processor.
 */
#if IS_DOUBLE
typedef double real;
typedef int64_t integer;
#else
typedef float real;
typedef int32_t integer;
#endif
typedef real vector __attribute__((vector_size(VECTOR_BYTES)));
typedef integer ivector __attribute__((vector_size(VECTOR_BYTES)));

#define LANES ((int)(VECTOR_BYTES / sizeof(real)))
#define MANTISSA_BITS (IS_DOUBLE ? 52 : 23)
#define EXPONENT_BIAS (IS_DOUBLE ? 1023 : 127)

/* Exponent of a block of zeros. The sum of any three exponents is a number, and 2 to that power is 0. */
#define DEAD (-(1 << 28))

INLINE vector splat(real x) { return x - (vector){0}; }

INLINE ivector isplat(integer x) { return x - (ivector){0}; }

INLINE ivector lane_numbers(void) {
    ivector numbers;
    for (int lane = 0; lane < LANES; lane++) numbers[lane] = lane;
    return numbers;
}

/* mask ? a : b; a comparison's mask has all bits or none set in each lane. */
INLINE vector choose(ivector mask, vector a, vector b) {
    return (vector)((mask & (ivector)a) | (~mask & (ivector)b));
}

INLINE ivector ilarger(ivector a, ivector b) {
    ivector mask = a > b;
    return (mask & a) | (~mask & b);
}

/* 2^x; 0 if that is not a normal number, and finite where it can only be a factor of 0. */
INLINE vector power_of_two(ivector x) {
    const integer most = EXPONENT_BIAS - 1;
    ivector large = x > most, bits = ((large & most) | (~large & x)) + EXPONENT_BIAS;
    return (vector)((bits & (bits > 0)) << MANTISSA_BITS);
}

/* floor(log2 x) of positive normal numbers, and DEAD for 0. */
INLINE ivector exponent_of(vector x) {
    ivector positive = x > 0, exponent = ((ivector)x >> MANTISSA_BITS) - EXPONENT_BIAS;
    return (positive & exponent) | (~positive & DEAD);
}

/* x where the weight is not 0 and x is a finite number, else 0: no run passes where the weight is 0, and the
 * derivative can be infinite there. */
INLINE vector keep_reached(vector x, vector weight) {
    const real most = sizeof(real) == 4 ? (real)1e36 : (real)1e300;
    return (vector)((ivector)x & (weight > 0) & (x <= most) & (x >= -most));
}

/* For x <= 0, e^x = scale * (1 + rest), where scale is a power of two; to be replaced by 0 where e^x is not normal. */
struct exponential_parts {
    vector scale, rest;
    ivector normal;
};

INLINE struct exponential_parts exponential_of(vector x) {
    static const double inverse_factorials[] = {
        1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800,
        1. / 39916800, 1. / 479001600, 1. / 6227020800};
    const int is_float = sizeof(real) == 4, degree = is_float ? 7 : 13;
    const real lowest = is_float ? -87 : -708, log2_e = (real)1.44269504088896340736;
    /* ln 2 in two parts, the first with so few digits that its products with small integers are exact. */
    const real ln2_high = is_float ? (real)0.693359375 : (real)0x1.62e42fee00000p-1;
    const real ln2_low = is_float ? (real)-2.12194440054690583e-4 : (real)1.90821492927058770002e-10;
    const vector round = splat(is_float ? (real)0x1.8p23 : (real)0x1.8p52); /* x + round - round is an integer */
    const vector shifted = x * log2_e + round, power = shifted - round, rest = x - power * ln2_high - power * ln2_low;
    vector sum = splat((real)inverse_factorials[degree]);
    UNROLL for (int k = degree - 1; k > 0; k--) sum = sum * rest + (real)inverse_factorials[k];
    return (struct exponential_parts){power_of_two((ivector)shifted - (ivector)round), sum * rest, ~(x < lowest)};
}

/* e^x for x <= 0; 0 where that is not a normal number, and NaN for NaN. */
INLINE vector exponential(vector x) {
    const struct exponential_parts e = exponential_of(x);
    return (vector)((ivector)((e.rest + 1) * e.scale) & e.normal);
}

INLINE vector magnitude(vector x) { return choose(x < 0, -x, x); }

INLINE vector sigmoid(vector x) {
    const vector e = exponential(-magnitude(x)), positive = 1 / (1 + e);
    return choose(x < 0, e * positive, positive);
}

/* By e^-2|x| - 1, which is as exact where x is close to 0. */
INLINE vector hyperbolic_tangent(vector x) {
    const struct exponential_parts e = exponential_of(-2 * magnitude(x));
    const vector less = e.scale * e.rest + (e.scale - 1), minus = choose(e.normal, less, splat(-1)) , t = -minus / (2 + minus);
    return choose(x < 0, -t, t);
}

INLINE real lane_sum(vector x) {
    real sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += x[lane];
    return sum;
}

/* x with lanes l and l ^ step exchanged. */
INLINE vector exchange(vector x, int step) {
#ifdef __clang__
    vector exchanged;
    for (int lane = 0; lane < LANES; lane++) exchanged[lane] = x[lane ^ step];
    return exchanged;
#else
    return __builtin_shuffle(x, lane_numbers() ^ step);
#endif
}

/* The sums of LANES vectors, each in the lane of its number; x is overwritten. */
INLINE vector lane_sums(vector x[LANES]) {
    UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
        ivector mask = (lane_numbers() & step) != 0;
        UNROLL for (int m = 0; m < step; m++)
            x[m] = choose(mask, x[m + step], x[m]) + exchange(choose(mask, x[m], x[m + step]), step);
    }
    return x[0];
}

/* Vectors that lie anywhere in memory, and cover only `count` numbers if that is less than a vector has lanes; the
 * other lanes become those of `rest`. */
INLINE vector load_beside(const real *from, int count, vector rest) {
    if (count >= LANES) memcpy(&rest, from, sizeof rest);
    else if (count > 0) memcpy(&rest, from, count * sizeof(real));
    return rest;
}

INLINE vector load(const real *from, int count) { return load_beside(from, count, (vector){0}); }

INLINE void store(real *to, vector x, int count) {
    if (count >= LANES) memcpy(to, &x, sizeof x);
    else if (count > 0) memcpy(to, &x, count * sizeof(real));
}

/* Whether all these numbers are finite. */
INLINE int are_finite(const real *x, size_t count) {
    enum { PARTS = 4 }; /* so that an addition need not wait for the last one */
    vector rest[PARTS] = {{0}}, numbers;
    size_t i = 0;
    for (; i + PARTS * LANES <= count; i += PARTS * LANES)
        UNROLL for (int part = 0; part < PARTS; part++) {
            numbers = load(x + i + part * LANES, LANES);
            rest[part] += numbers - numbers; /* 0, or else NaN */
        }
    for (; i < count; i += LANES) {
        numbers = load(x + i, count - i < (size_t)LANES ? (int)(count - i) : LANES);
        rest[0] += numbers - numbers;
    }
    return lane_sum(rest[0] + rest[1] + rest[2] + rest[3]) == 0;
}

/* The arrays of a call, which may be of float where the kernel is of double. */

/* Whether they are of the kernel's type. */
INLINE int is_same_type(int64_t is_double) { return sizeof(real) == 4 || is_double; }

/* Copies a part of an array; one of no elements may be NULL. */
INLINE void get_numbers(real *to, int64_t is_double, const void *array, size_t first, size_t count) {
    if (count == 0) return;
    if (is_same_type(is_double)) memcpy(to, (const real *)array + first, count * sizeof(real));
    else
        for (size_t i = 0; i < count; i++) to[i] = ((const float *)array)[first + i];
}

INLINE void put_numbers(int64_t is_double, void *array, size_t first, size_t count, const real *from) {
    if (count == 0) return;
    if (is_same_type(is_double)) memcpy((real *)array + first, from, count * sizeof(real));
    else
        for (size_t i = 0; i < count; i++) ((float *)array)[first + i] = (float)from[i];
}

/* A part of an array where it is, or at `room` if it has to be converted; NULL of NULL. */
INLINE const real *see_numbers(int64_t is_double, const void *array, size_t first, size_t count, real *room) {
    if (!array) return NULL;
    if (is_same_type(is_double)) return (const real *)array + first;
    get_numbers(room, is_double, array, first, count);
    return room;
}
