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
