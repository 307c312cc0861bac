-- SPDX-License-Identifier: Apache-2.0
--
-- schema_5.sql - the step from version 4 of the results database to version 5.
--
-- Built into the store like schema.sql and run once, after version 4 on a new file. Released: never edited.

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
