-- SPDX-License-Identifier: Apache-2.0
--
-- store_test_v4.sql - a database as version 4 left it, for store_migrate_test: that of store_test_v3.sql,
-- migrated by version 4, which then stored two trials of a planted fault in it.

PRAGMA application_id = 0x6d6c6163;
PRAGMA user_version = 4;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO "bench" VALUES(1,4,'ring','long','a7e7e3d549972cb10518dbf1a2850c2612196ab7842f71785bb42f9ef0aaf7e4','scalar',0,2,0.25,0.125,8000000000.0,1000000000.0,64000000000.0,0.5,'avx512bf16','avx2',0.75,0,7);
CREATE TABLE bisect_step (
    -- One commit tried in the search for the first bad one, of a case or of a metric.
    id         INTEGER PRIMARY KEY,
    testcase   INTEGER REFERENCES testcase (num),
    metric     TEXT,                                        -- name of the metric, NULL for a case
    kernel     TEXT NOT NULL CHECK (kernel <> ''),
    git_commit TEXT NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('good', 'bad', 'skip')),
    seconds    REAL,                                        -- build and run together
    output     TEXT,                                        -- last lines of what was printed
    CHECK (testcase IS NOT NULL OR metric IS NOT NULL)
) STRICT;
INSERT INTO "bisect_step" VALUES(1,2,NULL,'scalar','c0ffee','bad',1.5,'two
lines');
CREATE TABLE build (
    -- What was built; figures without it are not evidence. One row a distinct build.
    id         INTEGER PRIMARY KEY,
    git_commit TEXT NOT NULL,                               -- hash, or "unknown"
    dirty      INTEGER NOT NULL CHECK (dirty IN (0, 1)),    -- 1: work tree differed from the commit
    compiler   TEXT NOT NULL,                               -- name and version
    flags      TEXT NOT NULL,                               -- compiler flags
    sanitizer  TEXT NOT NULL,                               -- "" for none
    isa        TEXT NOT NULL,                               -- what kernels may use on this CPU
    UNIQUE (git_commit, dirty, compiler, flags, sanitizer, isa)
) STRICT;
INSERT INTO "build" VALUES(1,'c0ffee',1,'clang 14','-O2','','avx2');
INSERT INTO "build" VALUES(2,'deaf00d',0,'clang 14','-O2','','avx2');
CREATE TABLE catch (
    -- What else speaks against the kernel of a trial: on so many of its surveyed cases.
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    kind  TEXT NOT NULL CHECK (kind IN ('detector', 'criterion')), -- a check of ours, a published rule
    name  TEXT NOT NULL CHECK (name <> ''),
    cases INTEGER NOT NULL CHECK (cases >= 1),
    PRIMARY KEY (trial, kind, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "catch" VALUES(1,'criterion','flashmla',4);
INSERT INTO "catch" VALUES(1,'detector','tier1',9);
CREATE TABLE finding (
    -- A fault, kept over runs. Seen again after `fixed` it is `open` again; `known` stays known.
    id         INTEGER PRIMARY KEY,
    testcase   INTEGER NOT NULL REFERENCES testcase (num),
    kernel     TEXT NOT NULL CHECK (kernel <> ''),
    verdict    TEXT NOT NULL CHECK (verdict IN ('fail-certain', 'fail-improbable', 'crash',
               'timeout')),
    state      TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'fixed', 'known')),
    first_seen TEXT NOT NULL,                               -- time
    first_run  INTEGER NOT NULL REFERENCES run (id),
    last_seen  TEXT NOT NULL,                               -- time
    last_run   INTEGER NOT NULL REFERENCES run (id),
    reason     TEXT,                                        -- of the last time it was given
    repro      TEXT,                                        -- command line that shows it
    UNIQUE (testcase, kernel, verdict)
) STRICT;
INSERT INTO "finding" VALUES(1,1,'fault:canary-nan','fail-certain','open','2001-02-03T04:05:06Z',1,'2001-02-03T04:05:06Z',1,'outside the certified interval','mlacheck run --kernel fault:canary-nan --case ''sparse v=1 S=1 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=4 row_seed=1 slow=0 set=- put=-''');
INSERT INTO "finding" VALUES(2,2,'scalar','crash','known','2001-02-03T05:05:06Z',2,'2001-02-03T05:05:07Z',2,'why','mlacheck run --case ''ring''');
CREATE TABLE metric (
    -- Statistics of a verdict in long form: a new one needs no new column.
    verdict INTEGER NOT NULL REFERENCES verdict (id) ON DELETE CASCADE,
    name    TEXT NOT NULL CHECK (name <> ''),               -- its unit is part of the name: max_ulp
    value   ANY NOT NULL CHECK (typeof(value) = 'real' OR value IN ('inf', '-inf', 'nan')),
    PRIMARY KEY (verdict, name)
) STRICT, WITHOUT ROWID;
INSERT INTO "metric" VALUES(1,'bias',-1.47280847107189749589e-01);
INSERT INTO "metric" VALUES(1,'correctly_rounded',0.99951171875);
INSERT INTO "metric" VALUES(1,'max_ulp',5.00000789097526876503e-01);
INSERT INTO "metric" VALUES(1,'rms_relative',1.6012880467251228763e-03);
INSERT INTO "metric" VALUES(1,'rows_judged',4.0);
INSERT INTO "metric" VALUES(1,'rows_unspecified',0.0);
INSERT INTO "metric" VALUES(2,'bias',0.0);
INSERT INTO "metric" VALUES(2,'correctly_rounded',0.0);
INSERT INTO "metric" VALUES(2,'max_ulp',0.0);
INSERT INTO "metric" VALUES(2,'rms_relative',0.0);
INSERT INTO "metric" VALUES(2,'rows_judged',6.0);
INSERT INTO "metric" VALUES(2,'rows_unspecified',0.0);
INSERT INTO "metric" VALUES(3,'bias','-inf');
INSERT INTO "metric" VALUES(3,'max_ulp','inf');
INSERT INTO "metric" VALUES(3,'rms_relative','nan');
INSERT INTO "metric" VALUES(5,'max_ulp',5.00000789097526876503e-01);
INSERT INTO "metric" VALUES(5,'p99_ulp',0.5);
INSERT INTO "metric" VALUES(5,'rows_judged',4.0);
INSERT INTO "metric" VALUES(5,'would_pass_allclose_1e2',1.0);
CREATE TABLE run (
    -- One call of a command that judges.
    id       INTEGER PRIMARY KEY AUTOINCREMENT,             -- never reused
    build    INTEGER NOT NULL REFERENCES build (id),
    command  TEXT NOT NULL,                                 -- verb with its arguments
    host_cpu TEXT NOT NULL,                                 -- model name
    kernels  TEXT NOT NULL,                                 -- comma separated
    seed     INTEGER,
    started  TEXT NOT NULL,                                 -- time
    ended    TEXT                                           -- time; NULL: running, or died
) STRICT;
INSERT INTO "run" VALUES(1,1,'run --set upstream','a CPU','scalar,fault:canary-nan',1,'2001-02-03T04:05:06Z','2001-02-03T04:05:07Z');
INSERT INTO "run" VALUES(2,1,'fuzz','a CPU','scalar',NULL,'2001-02-03T05:05:06Z',NULL);
INSERT INTO "run" VALUES(3,2,'run --kernel scalar','a CPU','scalar',1,'2001-02-04T04:05:06Z','2001-02-04T04:05:07Z');
INSERT INTO "run" VALUES(4,2,'bench --shape long','a CPU','scalar',1,'2001-02-05T04:05:06Z','2001-02-05T04:05:07Z');
INSERT INTO "run" VALUES(5,2,'faults --trials 2','a CPU','fault:*',1,'2001-02-06T04:05:06Z','2001-02-06T04:05:07Z');
CREATE TABLE tally (
    -- Cases counted without a row each (fuzzing). Such a case has no row in verdict.
    run       INTEGER NOT NULL REFERENCES run (id),
    op        TEXT NOT NULL CHECK (op IN ('ring', 'sparse')),
    kernel    TEXT NOT NULL CHECK (kernel <> ''),
    family    TEXT NOT NULL,
    verdict   TEXT NOT NULL CHECK (verdict IN ('pass', 'fail-certain', 'fail-improbable',
              'unjudged', 'unsupported', 'refused', 'crash', 'timeout')),
    n         INTEGER NOT NULL                              -- cases; stops at 2^53
              CHECK (n BETWEEN 0 AND 9007199254740992),
    max_ratio ANY CHECK (typeof(max_ratio) IN ('null', 'real')
              OR max_ratio IN ('inf', 'nan')),              -- worst of them, unit 1
    PRIMARY KEY (run, op, kernel, family, verdict)
) STRICT, WITHOUT ROWID;
INSERT INTO "tally" VALUES(2,'ring','scalar','full','unjudged',3,NULL);
INSERT INTO "tally" VALUES(2,'ring','scalar','profile','pass',12345,0.875);
CREATE TABLE testcase (
    -- A case by content. Shape columns: NULL where the case does not have the field.
    num                INTEGER PRIMARY KEY,                 -- local to this file; id is the name
    id                 TEXT NOT NULL UNIQUE                 -- SHA-256 of line, 64 lower-case hex
                       CHECK (length(id) = 64 AND id NOT GLOB '*[^0-9a-f]*'),
    line               TEXT NOT NULL CHECK (line <> ''),    -- canonical case line, replayable
    op                 TEXT NOT NULL CHECK (op IN ('ring', 'sparse')),
    family             TEXT NOT NULL,                       -- family of data
    region             TEXT NOT NULL,                       -- score region, "" for none
    heads              INTEGER,
    threads            INTEGER,
    ring_size          INTEGER,                             -- ring: ranks
    batch              INTEGER,
    q_rows             INTEGER,                             -- ring: query rows a rank
    kv_rows            INTEGER,                             -- ring: key rows a rank
    head_dim           INTEGER,                             -- ring: elements of a key
    head_dim_v         INTEGER,                             -- ring: elements of a value
    logical_n          INTEGER,                             -- ring: valid length of the sequence
    kv_actual_isl      INTEGER,                             -- ring: length already cached
    kv_cache_batch_idx INTEGER,                             -- ring: cache slot
    is_balanced        INTEGER,                             -- ring: 0 or 1
    topology           INTEGER,                             -- ring: code of the interface
    num_links          INTEGER,                             -- ring: links between neighbours
    q_chunk_size       INTEGER,                             -- ring: rows
    k_chunk_size       INTEGER,                             -- ring: rows
    queries            INTEGER,                             -- sparse: query rows
    keys               INTEGER,                             -- sparse: cache rows
    rope               INTEGER,                             -- sparse: rotary width, elements
    topk               INTEGER,                             -- sparse: indices a row
    topk_tiled         INTEGER,                             -- sparse: 0 or 1
    dense              INTEGER,                             -- sparse: 0 or 1
    q_pos_offset       INTEGER,                             -- sparse: position of the first query
    out_order          INTEGER,                             -- sparse: code of the interface
    cores              INTEGER                              -- sparse: cores the work is cut for
, sign_coins INTEGER CHECK (sign_coins IN (0, 1))) STRICT;
INSERT INTO "testcase" VALUES(1,'a7e7e3d549972cb10518dbf1a2850c2612196ab7842f71785bb42f9ef0aaf7e4','sparse v=1 S=1 S_kv=128 H=16 Rr=64 K=128 tiled=0 dense=0 offset=- order=mx4 cores=1 threads=0 scale=0x1.555556p-5 family=upstream region=normal amount=0 indices=sorted poison=nan stats=1 seed=1 rows=4 row_seed=1 slow=0 set=- put=-','sparse','upstream','normal',16,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,128,64,128,0,0,NULL,0,1,0);
INSERT INTO "testcase" VALUES(2,'000000000000000000000000000000000000000000000000000000000000004d','ring v=1 heads=2','ring','profile','flat',2,NULL,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1);
CREATE TABLE trial (
    -- One search for a failing case of one kernel, known to be wrong or known to be right.
    id          INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL REFERENCES run (id),
    role        TEXT NOT NULL                               -- hidden: no input can show what is wrong;
                CHECK (role IN ('fault', 'hidden', 'control', 'canary')), -- a control is right
    fault       TEXT NOT NULL CHECK (fault <> ''),          -- name of the kernel
    class       TEXT NOT NULL,                              -- of faults, "" for none
    op          TEXT NOT NULL CHECK (op IN ('ring', 'sparse')),
    search      TEXT NOT NULL CHECK (search IN ('random', 'guided')),
    trial       INTEGER NOT NULL CHECK (trial >= 0),        -- number, from 0
    seed        INTEGER NOT NULL,                           -- of the search
    outcome     TEXT NOT NULL                               -- survived: a case did reach the fault
                CHECK (outcome IN ('killed', 'survived', 'not-applied')),
    executions  INTEGER NOT NULL CHECK (executions >= 0),   -- cases tried, the killing one included
    applied     INTEGER NOT NULL CHECK (applied >= 0),      -- of these, that reached the fault
    cpu_seconds REAL NOT NULL CHECK (cpu_seconds >= 0),     -- up to the kill, or in all
    verdict     TEXT,                                       -- of the killing case, as in verdict.verdict
    relation    TEXT,                                       -- that failed in it, "" for none
    reason      TEXT,                                       -- one line
    testcase    INTEGER REFERENCES testcase (num),          -- the killing case
    surveyed    INTEGER NOT NULL CHECK (surveyed >= 0),     -- cases held against every check after the kill
    CHECK ((outcome = 'killed') = (testcase IS NOT NULL)),
    UNIQUE (run, fault, op, search, trial)
) STRICT;
INSERT INTO "trial" VALUES(1,5,'fault','rope-ignored','M25_DIM_STRIDE_MIX','ring','guided',0,11,'killed',17,5,0.125,'fail-certain','','outside the certified interval',2,9);
INSERT INTO "trial" VALUES(2,5,'fault','rope-ignored','M25_DIM_STRIDE_MIX','ring','guided',1,12,'survived',100,3,2.5,NULL,NULL,NULL,NULL,0);
CREATE TABLE verdict (
    -- One kernel on one case in one run; a further row for each relation that was judged.
    id             INTEGER PRIMARY KEY,
    run            INTEGER NOT NULL REFERENCES run (id),
    testcase       INTEGER NOT NULL REFERENCES testcase (num),
    kernel         TEXT NOT NULL CHECK (kernel <> ''),
    verdict        TEXT NOT NULL CHECK (verdict IN ('pass', 'fail-certain', 'fail-improbable',
                   'unjudged', 'unsupported', 'refused', 'crash', 'timeout')),
    relation       TEXT NOT NULL,                           -- "" for the plain verdict
    reason         TEXT,                                    -- why unjudged, what failed; one line
    max_ratio      ANY CHECK (typeof(max_ratio) IN ('null', 'real')
                   OR max_ratio IN ('inf', 'nan')),         -- worst error / allowed bound, unit 1
    elements_n     INTEGER CHECK (elements_n >= 0),         -- elements judged
    element        TEXT,                                    -- worst one, out[d=..,..]
    got            TEXT,                                    -- its value, %a
    lo             TEXT,                                    -- least allowed value, %a
    hi             TEXT,                                    -- greatest allowed value, %a
    kernel_seconds ANY,                                     -- time in the kernel, seconds
    oracle_seconds ANY                                      -- time in the oracle, seconds
) STRICT;
INSERT INTO "verdict" VALUES(1,1,1,'scalar','pass','','',2.40471879947463488842e-05,2048,'out[q=0,h=8,l=124]','-0x1.0ap-3','-0x1.0cp-3','-0x1.0ap-3',0.5,0.25);
INSERT INTO "verdict" VALUES(2,1,1,'fault:canary-nan','fail-certain','','outside the certified interval','inf',3072,'out[q=0,h=8,l=0]','nan','-0x1.1ap-5','-0x1.14p-5',0.5,0.25);
INSERT INTO "verdict" VALUES(3,2,2,'scalar','crash','','process died while this case ran',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "verdict" VALUES(4,2,2,'scalar','fail-certain','repeat','bits differ','nan',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "verdict" VALUES(5,3,1,'scalar','pass','','',2.40471879947465724987e-05,2048,'out[q=0,h=8,l=124]','-0x1.0ap-3','-0x1.0cp-3','-0x1.0ap-3',0.25,0.5);
CREATE INDEX verdict_by_run ON verdict (run, testcase, kernel);
CREATE INDEX verdict_by_case ON verdict (testcase, kernel);
CREATE VIEW outcome AS
    -- One row a (run, case, kernel): the gravest of its verdicts. Relations that a kernel does not
    -- promise (unsupported) do not hide a pass; one that is unjudged does. Tallies join as they are.
    -- Without a join to a table of severities, `WHERE run = ..` reaches the index of verdict.
    SELECT v.run, t.op, v.kernel, t.family,
           CASE max(CASE v.verdict
                    WHEN 'fail-certain' THEN 8 WHEN 'crash' THEN 7 WHEN 'timeout' THEN 6
                    WHEN 'fail-improbable' THEN 5 WHEN 'refused' THEN 4 WHEN 'unjudged' THEN 3
                    WHEN 'pass' THEN 2 WHEN 'unsupported' THEN 1 END)
           WHEN 8 THEN 'fail-certain' WHEN 7 THEN 'crash' WHEN 6 THEN 'timeout'
           WHEN 5 THEN 'fail-improbable' WHEN 4 THEN 'refused' WHEN 3 THEN 'unjudged'
           WHEN 2 THEN 'pass' WHEN 1 THEN 'unsupported' END AS verdict,
           1 AS cases, max(v.max_ratio) AS err_over_bound
    FROM verdict AS v JOIN testcase AS t ON t.num = v.testcase
    GROUP BY v.run, v.testcase, v.kernel
    UNION ALL
    SELECT run, op, kernel, family, verdict, n, max_ratio FROM tally;
CREATE VIEW summary AS
    -- Cases by what became of them; the counts from passed to crashed add up to cases.
    SELECT run, op, kernel, family,
           sum(cases) AS cases,
           sum(iif(verdict = 'pass', cases, 0)) AS passed,
           sum(iif(verdict = 'fail-certain', cases, 0)) AS failed,
           sum(iif(verdict = 'fail-improbable', cases, 0)) AS improbable,
           sum(iif(verdict = 'unjudged', cases, 0)) AS unjudged,
           sum(iif(verdict = 'unsupported', cases, 0)) AS unsupported,
           sum(iif(verdict = 'refused', cases, 0)) AS refused,
           sum(iif(verdict IN ('crash', 'timeout'), cases, 0)) AS crashed,
           max(err_over_bound) AS worst_err_over_bound
    FROM outcome
    GROUP BY run, op, kernel, family;
CREATE VIEW runs AS
    -- failed: every case with one of the four verdicts that make a finding.
    SELECT r.id AS run, r.started, r.command, r.kernels,
           b.git_commit || CASE b.dirty WHEN 1 THEN '-dirty' ELSE '' END AS "commit",
           coalesce(s.cases, 0) AS cases, coalesce(s.failed, 0) AS failed
    FROM run AS r
    JOIN build AS b ON b.id = r.build
    LEFT JOIN (SELECT run, sum(cases) AS cases, sum(failed + improbable + crashed) AS failed
               FROM summary GROUP BY run) AS s ON s.run = r.id
    ORDER BY r.id DESC;
CREATE VIEW worst AS
    -- The worst verdict of each (run, case, kernel) that has a ratio, worst first.
    SELECT v.run, substr(t.id, 1, 12) AS id, t.op, v.kernel, v.verdict,
           max(v.max_ratio) AS err_over_bound, v.element, t.line, v.testcase
    FROM verdict AS v JOIN testcase AS t ON t.num = v.testcase
    WHERE v.max_ratio IS NOT NULL
    GROUP BY v.run, v.testcase, v.kernel
    ORDER BY err_over_bound DESC;
CREATE VIEW trend AS
    -- Oldest commit first. Sanitizer builds compute on other paths: kept apart.
    SELECT b.git_commit AS "commit", b.dirty, b.sanitizer, o.kernel, o.op,
           min(r.started) AS first_run, sum(o.cases) AS cases,
           sum(CASE WHEN o.verdict IN ('fail-certain', 'fail-improbable', 'crash', 'timeout')
               THEN o.cases ELSE 0 END) AS failed,
           max(o.err_over_bound) AS worst_err_over_bound
    FROM outcome AS o
    JOIN run AS r ON r.id = o.run
    JOIN build AS b ON b.id = r.build
    GROUP BY b.git_commit, b.dirty, b.sanitizer, o.kernel, o.op
    ORDER BY first_run, b.git_commit, b.dirty, b.sanitizer, o.kernel, o.op;
CREATE VIEW findings AS
    -- Open ones first, then the last seen.
    SELECT substr(t.id, 1, 12) AS id, f.kernel, f.verdict, f.state, f.first_seen, f.last_seen,
           f.reason, f.repro, f.testcase
    FROM finding AS f JOIN testcase AS t ON t.num = f.testcase
    ORDER BY f.state <> 'open', f.last_seen DESC, f.id DESC;
CREATE VIEW accuracy AS
    -- The figures of a run's stored verdicts that may only improve; NULL where none was stored. worst_:
    -- of all, biases without their sign. A fuzz run stores a verdict for a fault and for a new worst
    -- error only, so its means say little.
    SELECT v.run, t.op, v.kernel, t.family, count(DISTINCT v.testcase) AS cases,
           max(iif(m.name = 'max_err_over_bound', m.value, NULL)) AS worst_err_over_bound,
           max(iif(m.name = 'p50_ulp', m.value, NULL)) AS worst_p50_ulp,
           max(iif(m.name = 'p99_ulp', m.value, NULL)) AS worst_p99_ulp,
           max(iif(m.name = 'max_ulp', m.value, NULL)) AS max_ulp,
           min(iif(m.name = 'correctly_rounded_percent', m.value, NULL)) AS min_rounded_percent,
           avg(iif(m.name = 'correctly_rounded_percent', m.value, NULL)) AS mean_rounded_percent,
           max(iif(m.name = 'rms_relative', m.value, NULL)) AS worst_rms_relative,
           max(iif(m.name = 'bias_se', iif(typeof(m.value) = 'text', m.value, abs(m.value)), NULL))
               AS worst_bias_se,
           max(iif(m.name = 'bias_outward_se',
                   iif(typeof(m.value) = 'text', m.value, abs(m.value)), NULL))
               AS worst_bias_outward_se,
           max(iif(m.name = 'chi_square_ratio', m.value, NULL)) AS worst_chi_square
    FROM verdict AS v
    JOIN testcase AS t ON t.num = v.testcase
    JOIN metric AS m ON m.verdict = v.id
    GROUP BY v.run, t.op, v.kernel, t.family;
CREATE VIEW criteria AS
    -- What published rules would have said of the same outputs. cases: those the rule was asked for;
    -- passed: it would have passed so many; failed: so many the verdict failed (certain or improbable,
    -- not for a relation); missed: of these the rule would have passed so many; alarms: so many that
    -- the verdict passed the rule would have failed.
    SELECT v.run, t.op, v.kernel, t.family, substr(m.name, length('would_pass_') + 1) AS criterion,
           count(*) AS cases, sum(m.value = 1) AS passed,
           sum(v.relation = '' AND v.verdict IN ('fail-certain', 'fail-improbable')) AS failed,
           sum(v.relation = '' AND v.verdict IN ('fail-certain', 'fail-improbable')
               AND m.value = 1) AS missed,
           sum(v.verdict = 'pass' AND m.value = 0) AS alarms
    FROM verdict AS v
    JOIN testcase AS t ON t.num = v.testcase
    JOIN metric AS m ON m.verdict = v.id
    WHERE m.name GLOB 'would_pass_*'
    GROUP BY v.run, t.op, v.kernel, t.family, m.name;
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
CREATE VIEW kill_matrix AS
    -- One row a (run, kernel, operation, kind of search). A trial that did not kill counts as one that
    -- takes for ever, so the (lower) median exists where at least half of the trials killed: that is when
    -- a fault counts as killed. One failing case accuses a control.
    WITH ranked AS (
        SELECT *,
               count(*) OVER (PARTITION BY run, fault, op, search) AS n,
               row_number() OVER (PARTITION BY run, fault, op, search
                   ORDER BY outcome <> 'killed', executions, trial) AS by_executions,
               row_number() OVER (PARTITION BY run, fault, op, search
                   ORDER BY outcome <> 'killed', cpu_seconds, trial) AS by_seconds
        FROM trial),
    grouped AS (
        SELECT run, role, fault, class, op, search, n AS trials, sum(outcome = 'killed') AS killed,
               sum(outcome <> 'not-applied') AS applied,
               max(iif(by_executions = (n + 1) / 2 AND outcome = 'killed', executions, NULL))
                   AS median_executions,
               max(iif(by_seconds = (n + 1) / 2 AND outcome = 'killed', cpu_seconds, NULL))
                   AS median_seconds,
               min(testcase) AS num, min(id) AS id
        FROM ranked
        GROUP BY run, fault, op, search),
    named AS (
        SELECT DISTINCT t.run, t.fault, t.op, t.search, c.kind, c.name
        FROM catch AS c JOIN trial AS t ON t.id = c.trial
        ORDER BY c.name)
    SELECT g.run, g.role, g.fault, g.class, g.op, g.search,
           CASE WHEN g.role = 'control' AND g.killed > 0 THEN 'accused'
                WHEN 2 * g.killed >= g.trials THEN 'killed'
                WHEN g.applied > 0 THEN 'survived'
                ELSE 'not-applied' END AS outcome,
           g.trials, g.killed, g.median_executions, g.median_seconds,
           (SELECT group_concat(n.name, ' ') FROM named AS n WHERE n.kind = 'detector'
                AND (n.run, n.fault, n.op, n.search) = (g.run, g.fault, g.op, g.search)) AS detectors,
           (SELECT group_concat(n.name, ' ') FROM named AS n WHERE n.kind = 'criterion'
                AND (n.run, n.fault, n.op, n.search) = (g.run, g.fault, g.op, g.search)) AS criteria,
           substr(c.id, 1, 12) AS testcase, g.id
    FROM grouped AS g LEFT JOIN testcase AS c ON c.num = g.num;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('run',5);
COMMIT;
