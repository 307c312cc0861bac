/* SPDX-License-Identifier: Apache-2.0
 *
 * team_test.c - the start gate, the event counter and the size of a team.
 */
#include "impl/team.h"

#include "impl/mla.h"
#include "impl/test_data.h"
#include "impl/test_mode.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define WORKERS 7

struct shared {
    struct mla_team team;
    atomic_int prepared_n;
    atomic_int run_n;
    atomic_int early_n; /* runs that began before all had prepared */
    int64_t failing;    /* worker whose prepare() fails, -1: none */
    int64_t turn;       /* the relay below; guarded by nothing but the events' order */
    atomic_llong place;
    uint32_t mode; /* the default one, and how often it was not met */
    atomic_int strange_n;
};

static void await_error(struct mla_team *team)
{
    int32_t status = MLA_OK;
    while (status == MLA_OK) {
        usleep(100);
        pthread_mutex_lock(&team->lock);
        status = team->status;
        pthread_mutex_unlock(&team->lock);
    }
}

static bool prepare(void *context, int64_t worker)
{
    struct shared *shared = context;
    usleep((useconds_t)(worker * 300)); /* so that a gate that does not hold would show */
    atomic_fetch_add(&shared->prepared_n, 1);
    if (shared->failing >= 0 && worker > shared->failing) {
        await_error(&shared->team);
        return false; /* a later error, which must not replace the first */
    }
    return worker != shared->failing;
}

static void count(void *context, int64_t worker)
{
    struct shared *shared = context;
    (void)worker;
    if (atomic_load(&shared->prepared_n) != WORKERS) {
        atomic_fetch_add(&shared->early_n, 1);
    }
    atomic_fetch_add(&shared->run_n, 1);
}

static void test_gate(void **state)
{
    static const struct mla_team_job job = {.prepare = prepare, .run = count};
    (void)state;
    for (int64_t failing = -1; failing < WORKERS; failing++) {
        struct shared shared = {.failing = failing};
        assert_int_equal(mla_team_init(&shared.team, WORKERS), MLA_OK);
        const int32_t status = mla_team_run(&shared.team, &job, &shared);
        assert_int_equal(status, failing < 0 ? MLA_OK : MLA_ERR_NOMEM);
        assert_int_equal(atomic_load(&shared.prepared_n), WORKERS);
        assert_int_equal(atomic_load(&shared.run_n), failing < 0 ? WORKERS : 0);
        assert_int_equal(atomic_load(&shared.early_n), 0);
        if (failing >= 0) {
            char want[80];
            snprintf(want, sizeof want, "memory could not be had (worker %d of %d)", (int)failing,
                     WORKERS);
            assert_string_equal(shared.team.message, want);
        }
        mla_team_destroy(&shared.team);
    }
}

/*
 * Worker i may move on only when place has reached i, as often as there are laps. A lost wakeup
 * would hang it; the turn is a plain variable, so a missing order between notify and wait is a data
 * race.
 */
#define LAPS 300
static void relay(void *context, int64_t worker)
{
    struct shared *shared = context;
    for (int64_t lap = 0; lap < LAPS; lap++) {
        for (;;) {
            const uint64_t seen = mla_team_events(&shared->team);
            if (atomic_load(&shared->place) == lap * WORKERS + worker) {
                break;
            }
            mla_team_wait(&shared->team, seen);
        }
        shared->turn++;
        atomic_fetch_add(&shared->place, 1);
        mla_team_notify(&shared->team);
    }
}

static void test_events(void **state)
{
    static const struct mla_team_job job = {.prepare = prepare, .run = relay};
    struct shared shared = {.failing = -1};
    (void)state;
    assert_int_equal(mla_team_init(&shared.team, WORKERS), MLA_OK);
    assert_int_equal(mla_team_run(&shared.team, &job, &shared), MLA_OK);
    assert_int_equal(shared.turn, LAPS * WORKERS);
    assert_int_equal(mla_team_events(&shared.team), LAPS * WORKERS);
    mla_team_destroy(&shared.team);
}

/* Every worker, the calling thread included, computes in the default mode; the caller's returns. */
static bool prepare_mode(void *context, int64_t worker)
{
    struct shared *shared = context;
    (void)worker;
    if (test_mode_get() != shared->mode) {
        atomic_fetch_add(&shared->strange_n, 1);
    }
    return true;
}

static void run_mode(void *context, int64_t worker)
{
    prepare_mode(context, worker);
    feraiseexcept(FE_INEXACT);
}

static void test_mode(void **state)
{
    static const struct mla_team_job job = {.prepare = prepare_mode, .run = run_mode};
    (void)state;
    for (int mode = 0; mode < TEST_MODES_N; mode++) {
        struct shared shared = {.failing = -1};
        assert_int_equal(mla_team_init(&shared.team, WORKERS), MLA_OK);
        test_mode_reset();
        shared.mode = test_mode_get();
        test_mode_set(mode);
        const uint32_t before = test_mode_get();
        const int32_t status = mla_team_run(&shared.team, &job, &shared);
        const uint32_t after = test_mode_get();
        test_mode_reset();
        assert_int_equal(status, MLA_OK);
        assert_true(before != shared.mode);
        assert_int_equal(after, before);
        assert_int_equal(atomic_load(&shared.strange_n), 0);
        mla_team_destroy(&shared.team);
    }
}

static void test_size(void **state)
{
    (void)state;
    assert_int_equal(mla_team_size(3, 8, 100), 3); /* asked for: also fewer than the ranks */
    assert_int_equal(mla_team_size(3, 8, 2), 2);
    assert_int_equal(mla_team_size(1, 1, 1), 1);
    assert_true(mla_team_size(0, 9, 100) >= 9);
    assert_int_equal(mla_team_size(0, 9, 4), 4);
    assert_true(mla_team_size(INT64_MAX, 1, INT64_MAX) >= 256);
    assert_true(mla_team_size(INT64_MAX, 1, INT64_MAX) < 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_mode),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests_name("team", tests, NULL, NULL);
}
