-- Offsets that consumer groups commit at `archiver serve kafka`.

CREATE TABLE group_offsets (
    group_id     text        NOT NULL,
    topic        text        NOT NULL,
    partition    integer     NOT NULL CHECK (partition >= 0),
    topic_id     uuid        NOT NULL,
    next_offset  bigint      NOT NULL CHECK (next_offset >= 0),
    leader_epoch integer     NOT NULL DEFAULT -1,
    metadata     text        NOT NULL DEFAULT '',
    committed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (group_id, topic, partition)
);
COMMENT ON COLUMN group_offsets.topic_id IS 'The topic that was read. The offset doesn''t hold for another one of the same name.';
