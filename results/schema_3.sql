-- SPDX-License-Identifier: Apache-2.0
--
-- schema_3.sql - the step from version 2 of the results database to version 3.
--
-- Built into the store like schema.sql and run once, after the steps before it. Released: never edited.

CREATE TABLE bench (
    -- One thing timed in a run: a kernel, a peer or an oracle on a shape, with a number of threads.
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL REFERENCES run (id),
    op          TEXT NOT NULL CHECK (op IN ('ring', 'sparse', 'oracle')),
    shape       TEXT NOT NULL CHECK (shape <> ''),          -- name in the table of shapes
    testcase    TEXT NOT NULL                               -- SHA-256 of the case line, as in testcase.id;
                CHECK (length(testcase) = 64                -- such a case need not be stored there
                AND testcase NOT GLOB '*[^0-9a-f]*'),
    kernel      TEXT NOT NULL CHECK (kernel <> ''),         -- or the peer, or which oracle
    is_peer     INTEGER NOT NULL CHECK (is_peer IN (0, 1)),
    threads     INTEGER NOT NULL CHECK (threads >= 1),
    seconds     REAL NOT NULL CHECK (seconds > 0),          -- median of the repetitions
    spread      REAL NOT NULL CHECK (spread >= 0),          -- (slowest - fastest) / median
    flops       REAL NOT NULL CHECK (flops > 0),            -- useful ones, of one call
    bytes       REAL NOT NULL CHECK (bytes >= 0),           -- moved by one call at least; 0: not counted
    peak        REAL NOT NULL CHECK (peak > 0),             -- flop/s of so many threads just then
    of_peak     REAL NOT NULL CHECK (of_peak >= 0),         -- median over the repetitions
    isa         TEXT NOT NULL,                              -- of the peak's instructions
    own_isa     TEXT,                                       -- of the kernel's; NULL: the peak's, or unknown
    of_own_peak REAL,                                       -- of that one's peak
    noisy       INTEGER NOT NULL CHECK (noisy IN (0, 1)),   -- 1: the peak itself did not stand still
    reps        INTEGER NOT NULL CHECK (reps >= 1)          -- repetitions
) STRICT;
CREATE INDEX bench_by_run ON bench (run);

CREATE VIEW speed AS
    -- Every timing with what was built and where it ran; only ratios compare across rows.
    SELECT b.run, r.started, u.git_commit || CASE u.dirty WHEN 1 THEN '-dirty' ELSE '' END AS "commit",
           u.compiler, u.sanitizer, r.host_cpu AS cpu, b.op, b.shape, b.kernel, b.is_peer, b.threads,
           b.seconds, b.spread, b.flops / b.seconds / 1e9 AS gflops,
           b.bytes / b.seconds / 1e9 AS gbytes, b.peak / 1e9 AS peak_gflops, b.of_peak, b.isa,
           b.own_isa, b.of_own_peak, b.noisy, b.reps, b.testcase, b.id
    FROM bench AS b
    JOIN run AS r ON r.id = b.run
    JOIN build AS u ON u.id = r.build;
