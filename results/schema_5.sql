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
