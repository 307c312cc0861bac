-- SPDX-License-Identifier: Apache-2.0
--
-- schema_5.sql - the step from version 4 of the results database to version 5.
--
-- Built into the store like schema.sql and run once, after the steps before it. Released: never edited.

-- A run by a name that is the same in every file that holds a copy of it: 128 random bits, made when it
-- begins.
ALTER TABLE run ADD COLUMN uid TEXT
    CHECK (length(uid) = 32 AND uid NOT GLOB '*[^0-9a-f]*');

-- Grows whenever something is added to the run: of two copies the one with more is the later one.
ALTER TABLE run ADD COLUMN writes INTEGER NOT NULL DEFAULT 0 CHECK (writes >= 0);

-- Runs of before are named by what is stored of them (mla_digest is the store's own function, see
-- store_digest.h), so that two copies of an old file, migrated apart, agree. The number is part of it, or two
-- empty runs of one file could agree too; metrics are not, because their verdict has measured times.
UPDATE run SET uid = (
    SELECT mla_digest(run.id, run.command, run.host_cpu, run.kernels, run.seed, run.started, run.ended,
               b.git_commit, b.dirty, b.compiler, b.flags, b.sanitizer, b.isa,
               (SELECT mla_digest(case_id, kernel, verdict, relation, reason, max_ratio, elements_n,
                           element, got, lo, hi, kernel_seconds, oracle_seconds)
                FROM (SELECT t.id AS case_id, v.*
                      FROM verdict AS v JOIN testcase AS t ON t.num = v.testcase
                      WHERE v.run = run.id ORDER BY v.id)),
               (SELECT mla_digest(op, kernel, family, verdict, n, max_ratio)
                FROM (SELECT * FROM tally WHERE tally.run = run.id
                      ORDER BY op, kernel, family, verdict)),
               (SELECT mla_digest(op, shape, testcase, kernel, threads, seconds, spread, peak, of_peak)
                FROM (SELECT * FROM bench WHERE bench.run = run.id ORDER BY id)),
               (SELECT mla_digest(fault, op, search, trial, seed, outcome, executions, cpu_seconds)
                FROM (SELECT * FROM trial WHERE trial.run = run.id ORDER BY id)))
    FROM build AS b WHERE b.id = run.build);

CREATE UNIQUE INDEX run_by_uid ON run (uid);

CREATE TABLE bisect (
    -- One search for what broke a case: a commit, or a setting. Everything that decides a step's outcome
    -- is in key, so the same command goes on where it was stopped, and a changed judge starts anew.
    id            INTEGER PRIMARY KEY,
    key           TEXT NOT NULL UNIQUE                      -- SHA-256, 64 lower-case hex
                  CHECK (length(key) = 64 AND key NOT GLOB '*[^0-9a-f]*'),
    testcase      INTEGER NOT NULL REFERENCES testcase (num),
    kernel        TEXT NOT NULL CHECK (kernel <> ''),
    question      TEXT NOT NULL CHECK (question <> ''),     -- fails, bits, or a condition on a metric
    repository    TEXT NOT NULL,                            -- path; "" where nothing was built
    build_command TEXT NOT NULL,                            -- likewise
    plugin        TEXT NOT NULL,                            -- path in the tree, likewise
    good          TEXT NOT NULL,                            -- commit, or configuration
    bad           TEXT NOT NULL,
    started       TEXT NOT NULL,                            -- time
    ended         TEXT,                                     -- time; NULL: not finished
    answer        TEXT                                      -- commits or settings, blanks between them
) STRICT;

-- Steps of a search above; NULL and the defaults in those of version 4 and before.
ALTER TABLE bisect_step ADD COLUMN bisect INTEGER REFERENCES bisect (id);
-- Settings that were changed, "" for none. A step of settings alone has git_commit "".
ALTER TABLE bisect_step ADD COLUMN configuration TEXT NOT NULL DEFAULT '';
ALTER TABLE bisect_step ADD COLUMN tries INTEGER CHECK (tries >= 0);
ALTER TABLE bisect_step ADD COLUMN failed INTEGER CHECK (failed BETWEEN 0 AND tries);
-- Fingerprint of the output, where that was asked for.
ALTER TABLE bisect_step ADD COLUMN bits TEXT;
CREATE UNIQUE INDEX bisect_step_once ON bisect_step (bisect, git_commit, configuration)
    WHERE bisect IS NOT NULL;
