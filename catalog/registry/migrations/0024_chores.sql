-- Background work on topics: how far each chore has come, and the order of commits that chores follow.

ALTER TABLE files ADD COLUMN commit_number bigint;
COMMENT ON COLUMN files.commit_number IS 'The commits of a topic in the order in which Postgres shows them; null until a chore or a confirmation numbers it.';
CREATE INDEX files_by_commit ON files (topic_id, commit_number) WHERE state = 'committed';

CREATE TABLE commit_numbers (
    topic_id  integer PRIMARY KEY REFERENCES topics,
    last      bigint  NOT NULL
);
COMMENT ON TABLE commit_numbers IS 'The last commit number of each topic. The row is locked until its commit is visible, so a reader of number 6 sees 5.';

CREATE TABLE chores (
    topic_id   integer     NOT NULL REFERENCES topics,
    chore      text        NOT NULL,
    cursor     bigint      NOT NULL DEFAULT 0,
    ended_at   timestamptz,
    failures   bigint      NOT NULL DEFAULT 0,
    failed_at  timestamptz,
    error      text,
    PRIMARY KEY (topic_id, chore)
);
COMMENT ON COLUMN chores.cursor IS 'The last commit number that the chore has dealt with.';
COMMENT ON COLUMN chores.failures IS 'Failures since it last ended without one.';
