-- SPDX-License-Identifier: Apache-2.0
--
-- schema_4.sql - the step from version 3 of the results database to version 4.
--
-- Built into the store like schema.sql and run once, after the steps before it. Released: never edited.

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

CREATE TABLE catch (
    -- What else speaks against the kernel of a trial: on so many of its surveyed cases.
    trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    kind  TEXT NOT NULL CHECK (kind IN ('detector', 'criterion')), -- a check of ours, a published rule
    name  TEXT NOT NULL CHECK (name <> ''),
    cases INTEGER NOT NULL CHECK (cases >= 1),
    PRIMARY KEY (trial, kind, name)
) STRICT, WITHOUT ROWID;

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
