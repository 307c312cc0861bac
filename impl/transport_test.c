/* SPDX-License-Identifier: Apache-2.0
 *
 * transport_test.c - shards travel hop by hop, each piece from the neighbour's gathered buffer.
 *
 * The pulls are made by hand, one rank at a time. Whatever a rank has copied is then overwritten
 * where it came from, so a rank that reads anything but its neighbour's buffer - the source's kv,
 * or the buffer of a rank further up - is seen by the rows it ends up with.
 */
#include "impl/transport.h"

#include "impl/test_data.h"

#define RANKS  4
#define BATCH  2
#define WIDTH  64
#define ROWS   64
#define SHARD  ((size_t)ROWS * WIDTH * 2) /* bytes */
#define POISON 0xa5

struct fixture {
    struct mla_ring_args args;
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
    assert_int_equal(mla_transport_init(&f->transport, &f->args, &layout), MLA_OK);
    return f;
}

static void destroy(struct fixture *f)
{
    mla_transport_free(&f->transport);
    for (int64_t rank = 0; rank < f->args.ring_size; rank++) {
        free(f->kv[rank]);
        free(f->original[rank]);
        free(f->gathered[rank]);
    }
    free(f);
}

static bool present(struct fixture *f, int64_t rank, int64_t source)
{
    return mla_transport_present(&f->transport, rank, source);
}

static int64_t pull(struct fixture *f, int64_t rank)
{
    return mla_transport_pull(&f->transport, rank);
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
    assert_int_equal(pull(f, 2), 1); /* its own shard, nothing else is anywhere */
    assert_int_equal(pull(f, 2), 0);
    assert_true(present(f, 2, 2));
    assert_false(present(f, 2, 0));

    assert_int_equal(pull(f, 0), 1);
    expect_original(f, 0, 0);
    overwrite_kv(f, 0);
    assert_int_equal(pull(f, 2), 0); /* two hops away: rank 1 has not pulled */
    assert_false(present(f, 2, 0));

    assert_int_equal(pull(f, 1), 3); /* its own, 0 forward, 2 backward */
    expect_original(f, 1, 0);
    assert_false(present(f, 1, 3));
    overwrite_gathered(f, 0, 0);

    assert_int_equal(pull(f, 2), 2); /* 1 and 0, both forward from rank 1 */
    expect_original(f, 2, 0);
    expect_original(f, 2, 1);
    overwrite_gathered(f, 1, 0);

    assert_int_equal(pull(f, 3), 4); /* its own, 2 and 1 forward, but 0 comes from rank 0 */
    assert_true(present(f, 3, 0));
    assert_memory_equal(place(f, 3, 0, 0), place(f, 0, 0, 0), SHARD); /* as overwritten above */
    expect_original(f, 3, 2);
    destroy(f);
}

/* A line, both ends' shards all the way along it. */
static void test_hops_of_a_line(void **state)
{
    struct fixture *f = make(4, MLA_TOPOLOGY_LINEAR, 3);
    (void)state;
    assert_int_equal(pull(f, 3), 3);
    assert_int_equal(pull(f, 0), 3); /* rank 3 is no neighbour of rank 0 */
    assert_false(present(f, 0, 3));
    assert_false(present(f, 3, 0));
    overwrite_kv(f, 0);
    overwrite_kv(f, 3);
    assert_int_equal(pull(f, 1), 6);  /* its own and 0 */
    assert_int_equal(pull(f, 2), 12); /* its own, 1, 0 and 3 */
    overwrite_gathered(f, 0, 0);
    overwrite_gathered(f, 3, 3);
    expect_original(f, 2, 0);
    expect_original(f, 2, 3);
    assert_false(mla_transport_complete(&f->transport, 3));
    assert_int_equal(pull(f, 3), 9);
    expect_original(f, 3, 0);
    assert_true(mla_transport_complete(&f->transport, 3));
    assert_int_equal(pull(f, 0), 3); /* 1; the others are not yet at rank 1 */
    assert_false(present(f, 0, 3));
    assert_int_equal(pull(f, 1), 6);
    overwrite_gathered(f, 2, 3);
    assert_int_equal(pull(f, 0), 6);
    expect_original(f, 0, 3);
    destroy(f);
}

static void test_pieces_n(void **state)
{
    static const int64_t links[] = {1, 2, 5, 63, 64, 65, INT64_MAX};
    static const int64_t pieces[] = {1, 2, 5, 63, 64, 64, 64};
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        struct fixture *f = make(2, MLA_TOPOLOGY_RING, links[i]);
        assert_int_equal(f->transport.pieces_n, pieces[i]);
        assert_int_equal(pull(f, 1), pieces[i]);
        assert_int_equal(pull(f, 0), 2 * pieces[i]);
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
    assert_int_equal(mla_transport_init(&transport, &f->args, &layout), MLA_OK);
    assert_int_equal(transport.pieces_n, 256);
    mla_transport_free(&transport);
    destroy(f);
}

/*
 * Rank 0 copies its shard piece by piece, the last one first; to hold the others back they are
 * marked as claimed, as if another thread were copying them. Rank 1 receives just those pieces that
 * are there, a part of the rows each, and may not use the shard before the last one.
 */
static void test_pieces_one_by_one(void **state)
{
    enum { PIECES = 4, PART = ROWS / PIECES };
    struct fixture *f = make(4, MLA_TOPOLOGY_RING, PIECES);
    (void)state;
    for (int64_t piece = 0; piece < PIECES; piece++) {
        atomic_store(&f->transport.pieces[piece], MLA_PIECE_CLAIMED); /* rank 0, source 0 */
    }
    assert_int_equal(pull(f, 0), 0);
    assert_int_equal(pull(f, 1), PIECES); /* its own */
    for (int64_t piece = PIECES - 1; piece >= 0; piece--) {
        assert_int_equal(pull(f, 1), 0);
        assert_false(present(f, 1, 0));
        atomic_store(&f->transport.pieces[piece], MLA_PIECE_MISSING);
        assert_int_equal(pull(f, 0), piece == PIECES - 1 ? 1 + PIECES : 1); /* and 1, backward */
        assert_int_equal(pull(f, 1), 1);
        for (int64_t row = 0; row < ROWS; row++) {
            const bool moved = row >= piece * PART;
            uint16_t poison[WIDTH];
            memset(poison, POISON, sizeof poison);
            for (int64_t batch = 0; batch < BATCH; batch++) {
                const uint16_t *old = f->original[0] + (batch * ROWS + row) * WIDTH;
                assert_memory_equal(place(f, 1, 0, batch) + row * WIDTH, moved ? old : poison,
                                    WIDTH * 2);
            }
        }
    }
    assert_true(present(f, 1, 0));
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hops_of_a_ring),    cmocka_unit_test(test_hops_of_a_line),
        cmocka_unit_test(test_pieces_n),          cmocka_unit_test(test_pieces_most),
        cmocka_unit_test(test_pieces_one_by_one),
    };
    return cmocka_run_group_tests_name("transport", tests, NULL, NULL);
}
