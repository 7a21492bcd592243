-- Where partitions begin by retention, what must not be removed, and what was erased (docs/adr/0045).

CREATE TABLE first_offsets (
    topic_id      integer     NOT NULL REFERENCES topics,
    partition     integer     NOT NULL,
    first_offset  bigint      NOT NULL,
    commit_id     text        NOT NULL,
    moved_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, partition)
);
COMMENT ON TABLE first_offsets IS 'Where the archive of a partition begins: everything below it is retired.';
COMMENT ON COLUMN first_offsets.commit_id IS 'The commit that moved it last.';

CREATE TABLE holds (
    id           text        PRIMARY KEY,
    topic_id     integer     NOT NULL REFERENCES topics,
    value        jsonb       NOT NULL,
    released_at  timestamptz
);
COMMENT ON TABLE holds IS 'Legal holds, released ones too.';
CREATE INDEX holds_active ON holds (topic_id) WHERE released_at IS NULL;

CREATE TABLE erased_offsets (
    topic_id      integer     NOT NULL REFERENCES topics,
    partition     integer     NOT NULL,
    start_offset  bigint      NOT NULL,
    end_offset    bigint      NOT NULL CHECK (end_offset > start_offset),
    commit_id     text        NOT NULL,
    PRIMARY KEY (topic_id, partition, start_offset)
);
COMMENT ON TABLE erased_offsets IS 'Offsets of records that were erased: nothing brings them back.';

CREATE TABLE erasures (
    id           text        PRIMARY KEY,
    topic_id     integer     NOT NULL REFERENCES topics,
    value        jsonb       NOT NULL,
    finished_at  timestamptz
);
COMMENT ON TABLE erasures IS 'What was asked to be erased, without what it was, and whether no object has it any more.';
CREATE INDEX erasures_open ON erasures (topic_id) WHERE finished_at IS NULL;
