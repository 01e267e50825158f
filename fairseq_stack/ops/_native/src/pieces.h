/* Work in pieces, which several workers may share.
 *
 * The pieces are the cells of a table of strips (rows) and blocks (columns). A piece can be done as soon as two others are:
 * the one before it in its strip, and the one before it in its block. So one worker goes from block to block. Of several
 * workers each takes the next strip that nobody has, and follows the strip before it at a distance of a piece or more: the
 * pieces on a diagonal of the table are done at once. A number does not depend on who computes it.
 */
#include <sched.h>
#include <stdatomic.h>

struct pieces {
    int strips, blocks;
    int *begin, *end; /* of each strip: its first block, and the one after its last */
    atomic_int *done; /* of each strip: the block that is done next; NULL if there is one worker */
    atomic_int next;  /* the first strip that nobody has */
};

/* Where a worker is; {-1, 0} at first, and {-1, -1} if there are several. */
struct piece {
    int strip, block;
};

INLINE struct piece first_piece(const struct pieces *all) { return (struct piece){-1, all->done ? -1 : 0}; }

static __attribute__((noinline, unused)) void wait_for_piece(const struct pieces *all, int strip, int block) {
    enum { PATIENCE = 2000 }; /* then other threads may need the core */
    for (int tries = 0; atomic_load_explicit(&all->done[strip], memory_order_acquire) <= block; tries++)
        if (tries > PATIENCE) sched_yield();
}

/* Notes that the worker has done its piece, and gives it the next one; returns 0 if there is none. */
static __attribute__((noinline, unused)) int next_piece(struct pieces *all, struct piece *at) {
    if (!all->done) {
        do {
            if (++at->strip == all->strips) *at = (struct piece){0, at->block + 1};
            if (at->block == all->blocks) return 0;
        } while (at->block < all->begin[at->strip] || at->block >= all->end[at->strip]);
        return 1;
    }
    if (at->strip >= 0) atomic_store_explicit(&all->done[at->strip], ++at->block, memory_order_release);
    if (at->strip < 0 || at->block == all->end[at->strip]) {
        at->strip = atomic_fetch_add(&all->next, 1);
        if (at->strip >= all->strips) return 0;
        at->block = all->begin[at->strip];
    }
    if (at->strip > 0) wait_for_piece(all, at->strip - 1, at->block);
    return 1;
}
