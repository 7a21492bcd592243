-- Files whose place in the table another file with the same records took.

ALTER TABLE files
    DROP CONSTRAINT files_state_check,
    DROP CONSTRAINT files_check1,
    ADD CONSTRAINT files_state_check CHECK (state IN ('uploaded', 'committed', 'rejected', 'replaced')),
    ADD CONSTRAINT files_committed_at_check CHECK ((state IN ('committed', 'replaced')) = (committed_at IS NOT NULL));
COMMENT ON COLUMN files.reason IS 'Why a range was rejected, or what replaced its file.';
CREATE INDEX files_path ON files (topic_id, path);
