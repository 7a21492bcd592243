-- The registry: an index of the truth, which lies in the tables and the journal (docs/operations.md).

CREATE TABLE topics (
    id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id     text        NOT NULL,
    topic          text        NOT NULL,
    topic_id       uuid,
    table_name     text        NOT NULL UNIQUE,
    table_uuid     uuid,
    last_field_id  integer     NOT NULL DEFAULT 0,
    config         jsonb       NOT NULL DEFAULT '{}',
    created_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (cluster_id, topic)
);
COMMENT ON TABLE topics IS 'A topic and the one table that holds it. Its row is the lock of everything below it.';
COMMENT ON COLUMN topics.table_uuid IS 'The Iceberg table the offsets and field ids belong to; null until it is made.';
COMMENT ON COLUMN topics.last_field_id IS 'The highest Iceberg field id ever given; new ones start above it.';

CREATE TABLE schema_versions (
    topic_id       integer     NOT NULL REFERENCES topics,
    version        integer     NOT NULL,
    fingerprint    text        NOT NULL,
    row_mapping    json        NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, version),
    UNIQUE (topic_id, fingerprint)
);
COMMENT ON COLUMN schema_versions.row_mapping IS 'Descriptors, options and field ids of key and value: all a replay needs.';

CREATE TABLE field_ids (
    topic_id         integer   NOT NULL REFERENCES topics,
    root             text      NOT NULL CHECK (root IN ('key', 'val')),
    path             integer[] NOT NULL,
    generation       integer   NOT NULL,
    parent_id        integer   NOT NULL,
    field_id         integer   NOT NULL,
    name             text      NOT NULL,
    source_name      text      NOT NULL,
    type             text      NOT NULL,
    state            text      NOT NULL CHECK (state IN ('live', 'deleted')),
    since_version    integer   NOT NULL,
    deleted_version  integer,
    PRIMARY KEY (topic_id, root, path, generation),
    UNIQUE (topic_id, field_id)
);
COMMENT ON COLUMN field_ids.path IS 'Protobuf field numbers from the root; negative steps are elements, map keys and values, our own fields.';

CREATE TABLE files (
    id              text        PRIMARY KEY,
    topic_id        integer     NOT NULL REFERENCES topics,
    partition       integer     NOT NULL,
    start_offset    bigint      NOT NULL,
    end_offset      bigint      NOT NULL CHECK (end_offset > start_offset),
    schema_version  integer     NOT NULL,
    leader_epoch    integer     NOT NULL,
    state           text        NOT NULL CHECK (state IN ('uploaded', 'committed', 'rejected')),
    path            text,
    rows            bigint      NOT NULL,
    size_bytes      bigint      NOT NULL,
    raw_values      bigint      NOT NULL,
    min_timestamp   bigint,
    max_timestamp   bigint,
    file            jsonb,
    created_ms      bigint      NOT NULL,
    staged_at       timestamptz NOT NULL DEFAULT now(),
    committed_at    timestamptz,
    commit_id       text,
    reason          text,
    CHECK ((state = 'committed') = (committed_at IS NOT NULL))
);
COMMENT ON TABLE files IS 'Translated ranges, with or without a file: half-open offsets, timestamps in milliseconds.';
COMMENT ON COLUMN files.commit_id IS 'archiver.commit-id of the snapshot; null where it had expired when it was looked for.';
COMMENT ON COLUMN files.reason IS 'Why a range was rejected.';

-- The fence in the last resort: two accepted ranges of a partition never start at one offset.
CREATE UNIQUE INDEX files_accepted ON files (topic_id, partition, start_offset) INCLUDE (end_offset)
    WHERE state IN ('uploaded', 'committed');
CREATE INDEX files_waiting ON files (topic_id, partition, start_offset) WHERE state = 'uploaded';

CREATE TABLE metadata (
    topic_id  integer     NOT NULL REFERENCES topics,
    key       text        NOT NULL,
    name      text        NOT NULL,
    value     jsonb       NOT NULL,
    deleted   boolean     NOT NULL DEFAULT false,
    updated   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, key, name)
);
COMMENT ON TABLE metadata IS 'Facts about a topic: the latest wins, deletion is a mark.';
