-- The schema of a result file, version 1. What each table holds is told in docs/result-file.md.

CREATE TABLE study (
    title           TEXT NOT NULL,
    study_text      TEXT NOT NULL,
    overrides_json  TEXT NOT NULL,
    seed            TEXT NOT NULL,
    plan_json       TEXT NOT NULL,
    published_json  TEXT NOT NULL,
    ceteris_version TEXT NOT NULL,
    created_unix_ns INTEGER NOT NULL
);

CREATE TABLE runs (
    id               INTEGER PRIMARY KEY,
    question         TEXT NOT NULL,
    level            TEXT NOT NULL,
    at               TEXT NOT NULL,
    block            INTEGER NOT NULL,
    started_unix_ns  INTEGER NOT NULL,
    finished_unix_ns INTEGER NOT NULL,
    error            TEXT,
    tps              REAL,
    p50_ms           REAL,
    p95_ms           REAL,
    p99_ms           REAL,
    max_ms           REAL,
    transactions     INTEGER,
    reads            INTEGER,
    writes           INTEGER,
    other            INTEGER,
    retries          INTEGER,
    steady           INTEGER,
    generator_bound  INTEGER,
    summary_json     TEXT
);
-- A cell is finished once in a block; it may have failed before.
CREATE UNIQUE INDEX one_finished_run ON runs (question, level, at, block) WHERE error IS NULL;

-- A sampler takes all its series at the same moments, and times compress badly: each axis is kept
-- once in its run. Rowid tables, because large rows do not belong into an index.
CREATE TABLE axes (
    id     INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs (id),
    points INTEGER NOT NULL,
    at_s   BLOB NOT NULL
);
CREATE TABLE series (
    id      INTEGER PRIMARY KEY,
    run_id  INTEGER NOT NULL REFERENCES runs (id),
    name    TEXT NOT NULL,
    unit    TEXT NOT NULL,
    axis_id INTEGER NOT NULL REFERENCES axes (id),
    data    BLOB NOT NULL
);
CREATE UNIQUE INDEX series_of_a_run ON series (run_id, name);

CREATE TABLE histograms (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    name   TEXT NOT NULL,
    unit   TEXT NOT NULL,
    hdr_v2 BLOB NOT NULL,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

-- A server has hundreds of variables, nearly all the same in every run: each text is kept once.
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);
CREATE TABLE observations (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    moment TEXT NOT NULL CHECK (moment IN ('before', 'after')),
    name   INTEGER NOT NULL REFERENCES texts (id),
    value  INTEGER NOT NULL REFERENCES texts (id),
    PRIMARY KEY (run_id, moment, name)
) WITHOUT ROWID;
CREATE VIEW fingerprints AS
    SELECT run_id, moment, names.text AS name, vals.text AS value
    FROM observations
    JOIN texts AS names ON names.id = observations.name
    JOIN texts AS vals ON vals.id = observations.value;

-- run_id is NULL for what the study did before its runs: fetching packages, loading datasets.
CREATE TABLE commands (
    id         INTEGER PRIMARY KEY,
    run_id     INTEGER REFERENCES runs (id),
    at_unix_ns INTEGER NOT NULL,
    command    TEXT NOT NULL,
    took_ms    REAL,
    status     TEXT
);
CREATE INDEX commands_of_a_run ON commands (run_id);

CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    run_id     INTEGER NOT NULL REFERENCES runs (id),
    at_unix_ns INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    text       TEXT NOT NULL
);
CREATE INDEX events_of_a_run ON events (run_id);

CREATE TABLE logs (
    run_id INTEGER NOT NULL REFERENCES runs (id),
    name   TEXT NOT NULL,
    text   TEXT NOT NULL,
    PRIMARY KEY (run_id, name)
) WITHOUT ROWID;

CREATE TABLE answers (
    position INTEGER PRIMARY KEY,
    question TEXT NOT NULL,
    json     TEXT NOT NULL
);
