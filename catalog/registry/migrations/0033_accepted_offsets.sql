-- Which offsets an acceptance of `archiver refill` is about. Older acceptances have no row (docs/adr/0104).

CREATE TABLE accepted_offsets (
    topic_id     integer NOT NULL REFERENCES topics,
    partition    integer NOT NULL,
    first_offset bigint  NOT NULL,
    commit_id    text    NOT NULL,
    spans        jsonb   NOT NULL,
    removed_rows bigint  NOT NULL,
    lost_rows    bigint  NOT NULL,
    PRIMARY KEY (topic_id, partition, first_offset, commit_id)
);
COMMENT ON TABLE accepted_offsets IS 'Offsets at which the table had no row when an operator accepted its missing rows.';
COMMENT ON COLUMN accepted_offsets.spans IS 'Start and exclusive end of each span, ascending. Some of these offsets may never have had a record.';
