-- SPDX-License-Identifier: Apache-2.0
--
-- schema_2.sql - the step from version 1 of the results database to version 2.
--
-- Built into the store like schema.sql and run once, after it on a new file. Released: never edited.

-- May a statistical test rest on the signs of the case's values (independent fair coins of the
-- generator)? NULL: the case was last stored by version 1, which did not ask.
ALTER TABLE testcase ADD COLUMN sign_coins INTEGER CHECK (sign_coins IN (0, 1));

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
