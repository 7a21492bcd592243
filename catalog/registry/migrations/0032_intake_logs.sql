-- Topics whose rows come from clients of the archiver's own servers: which write-ahead log has their acknowledged rows.

CREATE TABLE intake_logs (
    topic_id    integer     PRIMARY KEY REFERENCES topics,
    wal_id      text        NOT NULL,
    folder      text        NOT NULL,
    epoch       bigint      NOT NULL,
    drained     boolean     NOT NULL DEFAULT false,
    state       jsonb       NOT NULL DEFAULT '{}',
    next_offsets jsonb      NOT NULL DEFAULT '{}',
    reported_at timestamptz NOT NULL DEFAULT now(),
    taken_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE intake_logs IS 'The write-ahead log of each topic with source = "flight". Another log is taken only after this one was drained.';
COMMENT ON COLUMN intake_logs.folder IS 'HOST:PATH of the log, for people.';
COMMENT ON COLUMN intake_logs.epoch IS 'Rises with each process that takes the log. A process of an older epoch must not drain it.';
COMMENT ON COLUMN intake_logs.drained IS 'Whether the table has all acknowledged rows, and `state` the batch ids of clients.';
COMMENT ON COLUMN intake_logs.next_offsets IS 'The offsets after the last acknowledged rows at `reported_at`, by partition. For `archiver status`: nothing depends on them.';
COMMENT ON COLUMN intake_logs.state IS 'Next offsets and clients when the log was drained, for the next log.';
