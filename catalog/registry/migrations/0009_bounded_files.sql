-- What keeps rows of files small and few (docs/adr/0028), and indexes by which no question reads all of them.

ALTER TABLE files ADD COLUMN slim boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN files.slim IS 'Whether what manifests say of columns was left out of file, long after the commit.';
CREATE INDEX files_whole ON files (topic_id, committed_at) WHERE NOT slim;
CREATE INDEX files_counts ON files (topic_id, state) INCLUDE (rows, size_bytes);
CREATE INDEX files_lost ON files (topic_id) INCLUDE (state, start_offset, end_offset) WHERE lost;
