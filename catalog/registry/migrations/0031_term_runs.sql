-- Runs of the term store: at which offsets the values of chosen columns are (docs/adr/0100).

CREATE TABLE term_runs (
    id          text        PRIMARY KEY,
    topic_id    integer     NOT NULL REFERENCES topics,
    column_id   text        NOT NULL,
    name        text        NOT NULL,
    kind        text        NOT NULL,
    mapping     text        NOT NULL,
    state       text        NOT NULL DEFAULT 'current' CHECK (state IN ('current', 'dropped')),
    level       integer     NOT NULL,
    path        text        NOT NULL,
    size_bytes  bigint      NOT NULL,
    checksum    text        NOT NULL,
    entries     bigint      NOT NULL,
    begun_ms    bigint      NOT NULL,
    spans       jsonb       NOT NULL,
    leaves      bytea       NOT NULL,
    footer      bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX term_runs_topic ON term_runs (topic_id, column_id);
COMMENT ON TABLE term_runs IS 'Advisory: without a run, searches read the files that it covered. A dropped run waits for the deletion of its object.';
COMMENT ON COLUMN term_runs.leaves IS 'Of each leaf: first term, start, size, CRC-32 (64 bits each, little-endian). Terms are hashes of values.';
COMMENT ON COLUMN term_runs.footer IS 'The Parquet footer as a file of its own, compressed by zstd.';

CREATE TABLE term_run_files (
    run_id text NOT NULL REFERENCES term_runs,
    path   text NOT NULL,
    PRIMARY KEY (run_id, path)
);
CREATE INDEX term_run_files_path ON term_run_files (path);
COMMENT ON TABLE term_run_files IS 'The data files whose values are in runs. All runs of a column that name a file are needed for it: never delete only some of its rows.';
