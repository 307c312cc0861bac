/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_test.c - shards travel hop by hop, each piece from the neighbour's gathered buffer.
 *
 * Whatever has been copied is overwritten where it came from, so that a hop which reads anything but
 * the neighbour's buffer - the source's kv, or the buffer of a rank further up - is seen by the rows
 * it ends up with.
 */
#include "impl/transport.h"

#include "impl/test_data.h"

#include <pthread.h>
#include <unistd.h>

#define RANKS  4
#define BATCH  2
#define WIDTH  64
#define ROWS   64
#define SHARD  ((size_t)ROWS * WIDTH * 2) /* bytes */
#define POISON 0xa5

struct fixture {
    struct mla_ring_args args;
    struct mla_team team;
    struct mla_transport transport;
    uint16_t *kv[RANKS];
    uint16_t *original[RANKS];
    uint16_t *gathered[RANKS];
    const uint16_t *kv_in[RANKS];
};

static struct fixture *make(int64_t ring_size, int32_t topology, int64_t num_links)
{
    struct fixture *f = test_alloc(sizeof *f);
    memset(f, 0, sizeof *f);
    for (int64_t rank = 0; rank < ring_size; rank++) {
        f->kv[rank] = test_tensor(BATCH * ROWS * WIDTH, 10 + (uint64_t)rank);
        f->original[rank] = test_copy(f->kv[rank], BATCH * SHARD);
        f->gathered[rank] = test_alloc((size_t)ring_size * BATCH * SHARD);
        memset(f->gathered[rank], POISON, (size_t)ring_size * BATCH * SHARD);
        f->kv_in[rank] = f->kv[rank];
    }
    f->args = (struct mla_ring_args){.struct_size = sizeof f->args,
                                     .ring_size = ring_size,
                                     .batch = BATCH,
                                     .heads = 1,
                                     .q_rows = ROWS,
                                     .kv_rows = ROWS,
                                     .kv_batch = BATCH,
                                     .kv_heads = 1,
                                     .kv_head_dim = WIDTH,
                                     .gathered_rows = ring_size * ROWS,
                                     .gathered_batch = BATCH,
                                     .head_dim = WIDTH,
                                     .head_dim_v = 32,
                                     .logical_n = ring_size * ROWS,
                                     .topology = topology,
                                     .num_links = num_links,
                                     .q_chunk_size = 32,
                                     .k_chunk_size = 32,
                                     .dim = 2,
                                     .kv = f->kv_in,
                                     .gathered = f->gathered};
    const struct mla_layout layout = mla_layout_of(&f->args);
    assert_int_equal(mla_team_init(&f->team, 2), MLA_OK);
    assert_int_equal(mla_transport_init(&f->transport, &f->args, &layout, &f->team), MLA_OK);
    return f;
}

static void destroy(struct fixture *f)
{
    mla_transport_free(&f->transport);
    mla_team_destroy(&f->team);
    for (int64_t rank = 0; rank < f->args.ring_size; rank++) {
        free(f->kv[rank]);
        free(f->original[rank]);
        free(f->gathered[rank]);
    }
    free(f);
}

/* The state of a piece; what has() says of a rank's own shard says nothing of the buffer. */
static int state_of(struct fixture *f, int64_t rank, int64_t source, int64_t piece)
{
    const struct mla_transport *t = &f->transport;
    return atomic_load(&t->pieces[(rank * t->ring_size + source) * t->pieces_n + piece]);
}

static bool present(struct fixture *f, int64_t rank, int64_t source)
{
    for (int64_t piece = 0; piece < f->transport.pieces_n; piece++) {
        if (state_of(f, rank, source, piece) != MLA_PIECE_PRESENT) {
            return false;
        }
    }
    return true;
}

static void need(struct fixture *f, int64_t rank, int64_t source)
{
    mla_transport_need(&f->transport, rank, source, 0, ROWS);
    assert_true(mla_transport_has(&f->transport, rank, source, 0, ROWS));
}

static uint16_t *place(struct fixture *f, int64_t rank, int64_t source, int64_t batch)
{
    return f->gathered[rank] + (batch * f->args.gathered_rows + source * ROWS) * WIDTH;
}

/* The rank has the shard as its source once held it, in every batch entry. */
static void expect_original(struct fixture *f, int64_t rank, int64_t source)
{
    assert_true(present(f, rank, source));
    for (int64_t batch = 0; batch < BATCH; batch++) {
        assert_memory_equal(place(f, rank, source, batch),
                            f->original[source] + batch * ROWS * WIDTH, SHARD);
        if (rank != source) {
            assert_ptr_equal(mla_transport_shard(&f->transport, rank, source, batch),
                             place(f, rank, source, batch));
        }
    }
}

static void overwrite_kv(struct fixture *f, int64_t source)
{
    memset(f->kv[source], POISON, BATCH * SHARD);
}

static void overwrite_gathered(struct fixture *f, int64_t rank, int64_t source)
{
    for (int64_t batch = 0; batch < BATCH; batch++) {
        memset(place(f, rank, source, batch), POISON, SHARD);
    }
}

/*
 * Ring of four. Forward two hops, backward one: shard 0 goes 0 -> 1 -> 2 and 0 -> 3. Each hop finds
 * only what the one before left in its own buffer.
 */
static void test_hops_of_a_ring(void **state)
{
    struct fixture *f = make(4, MLA_TOPOLOGY_RING, 1);
    (void)state;
    need(f, 2, 2); /* its own: read where it is, nothing moves */
    assert_false(present(f, 2, 2));
    assert_ptr_equal(mla_transport_shard(&f->transport, 2, 2, 1), f->kv[2] + ROWS * WIDTH);

    need(f, 1, 0); /* through rank 0's own buffer */
    expect_original(f, 0, 0);
    expect_original(f, 1, 0);
    assert_false(present(f, 2, 0));
    assert_false(present(f, 3, 0));
    overwrite_kv(f, 0);
    overwrite_gathered(f, 0, 0);

    need(f, 2, 0); /* from rank 1 */
    expect_original(f, 2, 0);
    overwrite_gathered(f, 1, 0);
    need(f, 2, 0); /* there already */
    expect_original(f, 2, 0);

    need(f, 3, 0); /* backward, from rank 0 */
    assert_true(present(f, 3, 0));
    assert_memory_equal(place(f, 3, 0, 0), place(f, 0, 0, 0), SHARD); /* as overwritten above */

    need(f, 0, 2); /* forward 2 -> 3 -> 0: both hops at once, and no other rank gets it */
    expect_original(f, 2, 2);
    expect_original(f, 3, 2);
    expect_original(f, 0, 2);
    assert_false(present(f, 1, 2));
    overwrite_kv(f, 2);
    overwrite_gathered(f, 3, 2);
    need(f, 1, 2); /* backward 2 -> 1 */
    expect_original(f, 1, 2);
    destroy(f);
}

/* A line: rank 3 is no neighbour of rank 0, both ends' shards go all the way along it. */
static void test_hops_of_a_line(void **state)
{
    struct fixture *f = make(4, MLA_TOPOLOGY_LINEAR, 3);
    (void)state;
    need(f, 1, 3);
    expect_original(f, 3, 3);
    expect_original(f, 2, 3);
    expect_original(f, 1, 3);
    assert_false(present(f, 0, 3));
    overwrite_kv(f, 3);
    overwrite_gathered(f, 3, 3);
    overwrite_gathered(f, 2, 3);
    need(f, 0, 3);
    expect_original(f, 0, 3);

    need(f, 2, 0);
    overwrite_kv(f, 0);
    overwrite_gathered(f, 0, 0);
    overwrite_gathered(f, 1, 0);
    need(f, 3, 0);
    expect_original(f, 3, 0);
    assert_false(present(f, 0, 1));
    assert_false(present(f, 3, 2));
    destroy(f);
}

/* Carrying alone brings everything everywhere; over what is there already, and from any state. */
static void test_carry(void **state)
{
    (void)state;
    for (int64_t size = 1; size <= RANKS; size++) {
        for (int32_t topology = 0; topology <= 1; topology++) {
            struct fixture *f = make(size, topology, 3);
            int64_t trips_n = 0;
            if (size > 2) {
                mla_transport_need(&f->transport, 2, 0, 30, 1);
            }
            for (int64_t i = 0; i < size && size > 1; i++) { /* the first pieces of all shards */
                assert_true(mla_transport_carry(&f->transport));
                trips_n++;
            }
            for (int64_t i = 0; i < size * size && size > 1; i++) {
                assert_int_equal(state_of(f, i / size, i % size, 0), MLA_PIECE_PRESENT);
                assert_int_equal(state_of(f, i / size, i % size, 2), MLA_PIECE_MISSING);
            }
            while (mla_transport_carry(&f->transport)) {
                trips_n++;
            }
            assert_int_equal(trips_n, size > 1 ? 3 * size : 0);
            assert_false(mla_transport_carry(&f->transport));
            for (int64_t i = 0; i < size * size && size > 1; i++) {
                expect_original(f, i / size, i % size);
            }
            destroy(f);
        }
    }
}

static void test_pieces_n(void **state)
{
    static const int64_t links[] = {1, 2, 5, 63, 64, 65, INT64_MAX};
    static const int64_t pieces[] = {1, 2, 5, 63, 64, 64, 64};
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        struct fixture *f = make(2, MLA_TOPOLOGY_RING, links[i]);
        assert_int_equal(f->transport.pieces_n, pieces[i]);
        need(f, 0, 1);
        expect_original(f, 0, 1);
        destroy(f);
    }
}

/* A long shard moves in 256 pieces at most. */
static void test_pieces_most(void **state)
{
    struct fixture *f = make(2, MLA_TOPOLOGY_RING, 1000);
    struct mla_transport transport;
    struct mla_layout layout = mla_layout_of(&f->args);
    (void)state;
    layout.moved_rows = 320;
    assert_int_equal(mla_transport_init(&transport, &f->args, &layout, &f->team), MLA_OK);
    assert_int_equal(transport.pieces_n, 256);
    mla_transport_free(&transport);
    destroy(f);
}

/* Only the pieces that hold the rows asked for move: 64 rows in five pieces, 13 13 13 13 12. */
static void test_pieces_needed(void **state)
{
    enum { PIECES = 5 };
    static const struct {
        int64_t first, n, from, to; /* pieces from .. to */
    } asked[] = {{0, 1, 0, 0},   {12, 1, 0, 0}, {13, 1, 1, 1},  {12, 2, 0, 1}, {51, 1, 3, 3},
                 {52, 12, 4, 4}, {63, 1, 4, 4}, {20, 30, 1, 3}, {0, 64, 0, 4}, {39, 13, 3, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct fixture *f = make(4, MLA_TOPOLOGY_RING, PIECES);
        assert_false(mla_transport_has(&f->transport, 2, 0, asked[i].first, asked[i].n));
        mla_transport_need(&f->transport, 2, 0, asked[i].first, asked[i].n);
        assert_true(mla_transport_has(&f->transport, 2, 0, asked[i].first, asked[i].n));
        for (int64_t row = 0; row < ROWS; row++) {
            const int64_t piece = row / 13;
            const bool moved = piece >= asked[i].from && piece <= asked[i].to;
            uint16_t poison[WIDTH];
            memset(poison, POISON, sizeof poison);
            assert_int_equal(mla_transport_has(&f->transport, 2, 0, row, 1), moved);
            for (int64_t batch = 0; batch < BATCH; batch++) {
                const uint16_t *old = f->original[0] + (batch * ROWS + row) * WIDTH;
                assert_memory_equal(place(f, 2, 0, batch) + row * WIDTH, moved ? old : poison,
                                    WIDTH * 2);
            }
        }
        destroy(f);
    }
}

static void *need_in_thread(void *argument)
{
    mla_transport_need(&((struct fixture *)argument)->transport, 2, 0, 0, ROWS);
    return NULL;
}

/*
 * A piece that another thread is copying is waited for, wherever on the way it is, and not copied
 * again: the sleeper leaves its mark, and goes on when the piece has come and it has been told.
 * Other events only make it look again.
 */
static void test_claimed_elsewhere(void **state)
{
    (void)state;
    for (int64_t at = 0; at <= 2; at++) { /* on the way 0 -> 1 -> 2 */
        struct fixture *f = make(4, MLA_TOPOLOGY_RING, 1);
        atomic_uchar *piece = &f->transport.pieces[at * RANKS];
        pthread_t thread;
        atomic_store(piece, MLA_PIECE_CLAIMED);
        assert_int_equal(pthread_create(&thread, NULL, need_in_thread, f), 0);
        while (atomic_load(piece) != MLA_PIECE_WANTED) {
            usleep(100);
        }
        for (int i = 0; i < 20; i++) {
            mla_team_notify(&f->team);
            usleep(500);
            assert_int_equal(atomic_load(piece), MLA_PIECE_WANTED);
            assert_true(at == 2 || state_of(f, 2, 0, 0) == MLA_PIECE_MISSING);
        }
        for (int64_t batch = 0; batch < BATCH; batch++) { /* what only this copy could bring */
            memset(place(f, at, 0, batch), 0x11, SHARD);
        }
        assert_int_equal(atomic_exchange(piece, MLA_PIECE_PRESENT), MLA_PIECE_WANTED);
        mla_team_notify(&f->team);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(present(f, 2, 0));
        for (int64_t batch = 0; batch < BATCH; batch++) {
            assert_int_equal(place(f, 2, 0, batch)[5], 0x1111);
        }
        destroy(f);
    }
}

/* Nobody waits: nobody is told. The counter would otherwise move with every piece. */
static void test_quiet(void **state)
{
    struct fixture *f = make(4, MLA_TOPOLOGY_RING, 4);
    (void)state;
    while (mla_transport_carry(&f->transport)) {
    }
    assert_int_equal(mla_team_events(&f->team), 0);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hops_of_a_ring),
        cmocka_unit_test(test_hops_of_a_line),
        cmocka_unit_test(test_carry),
        cmocka_unit_test(test_pieces_n),
        cmocka_unit_test(test_pieces_most),
        cmocka_unit_test(test_pieces_needed),
        cmocka_unit_test(test_claimed_elsewhere),
        cmocka_unit_test(test_quiet),
    };
    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
