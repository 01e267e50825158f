/* Numbers with an exponent each, so that none is too small beside another: slow, and nothing is lost. */

#define NONE (-((int64_t)1 << 60)) /* the exponent of 0 */
#define FARTHEST 1e12              /* log weights that are farther below the largest of their step count as this far */

struct scaled {
    double m;  /* 0, or 1 <= |m| < 2 when it is stored */
    int64_t e; /* the number is m 2^e */
};

static const struct scaled ZERO = {0, NONE};

/* 2^d for d <= 0. */
static inline double power(int64_t d) {
    if (d < -1022) return 0;
    const uint64_t bits = (uint64_t)(d + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void add(struct scaled *sum, double m, int64_t e) {
    if (m == 0) return;
    if (e <= sum->e) sum->m += m * power(e - sum->e);
    else {
        sum->m = sum->m * power(sum->e - e) + m;
        sum->e = e;
    }
}

static inline void add_product(struct scaled *sum, struct scaled a, struct scaled b) { add(sum, a.m * b.m, a.e + b.e); }

static inline struct scaled product(struct scaled a, struct scaled b) {
    struct scaled sum = ZERO;
    add_product(&sum, a, b);
    return sum;
}

static inline struct scaled normal(struct scaled x) {
    int exponent;
    if (x.m == 0) return ZERO;
    const double m = frexp(x.m, &exponent);
    return (struct scaled){2 * m, x.e + exponent - 1};
}

static inline struct scaled quotient(struct scaled a, struct scaled b) {
    return normal((struct scaled){a.m / b.m, a.m == 0 ? NONE : a.e - b.e});
}

static inline double to_double(struct scaled x) {
    if (x.e < -2000) return 0;
    return ldexp(x.m, x.e > 2000 ? 2000 : (int)x.e);
}

static inline struct scaled of_double(double x) { return normal((struct scaled){x, 0}); }

/* e^x for x <= 0. */
static struct scaled exponential(double x) {
    const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 1.90821492927058770002e-10;
    if (x < -FARTHEST) x = x == -INFINITY ? x : -FARTHEST;
    if (x == -INFINITY) return ZERO;
    const double whole = rint(x * 1.44269504088896340736), rest = fma(-whole, ln2_low, fma(-whole, ln2_high, x));
    return normal((struct scaled){exp(rest), (int64_t)whole});
}
