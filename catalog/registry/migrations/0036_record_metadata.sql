-- Names and values that users give to keys and offsets (docs/adr/0109).

CREATE SEQUENCE metadata_sequence;

CREATE TABLE record_metadata (
    id            text        PRIMARY KEY,
    topic_id      integer     NOT NULL REFERENCES topics,
    key           bytea,
    partition     integer,
    start_offset  bigint,
    end_offset    bigint      CHECK (end_offset > start_offset),
    name          text        NOT NULL,
    value         text,
    set_at        timestamptz NOT NULL,
    sequence      bigint      NOT NULL,
    author        text        NOT NULL,
    salt          text        NOT NULL,
    state         text        NOT NULL CHECK (state IN ('pending', 'current', 'doomed')),
    folders       text[]      NOT NULL,
    CHECK ((key IS NULL) = (partition IS NOT NULL AND start_offset IS NOT NULL AND end_offset IS NOT NULL))
);
CREATE INDEX record_metadata_topic ON record_metadata (topic_id, name);
COMMENT ON TABLE record_metadata IS 'Every value that was set, with its history: the latest by set_at, then by sequence, is in force. Without a value, it was deleted.';
COMMENT ON COLUMN record_metadata.state IS 'Pending before its object is written. Doomed: an erasure deletes it as soon as its object is deleted.';
COMMENT ON COLUMN record_metadata.folders IS 'The folders beside journals that may have its object.';
