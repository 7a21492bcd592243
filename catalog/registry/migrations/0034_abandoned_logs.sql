-- Write-ahead logs: requests to write everything to the table, states that the table has, and logs that were given up.

ALTER TABLE intake_logs
    ADD COLUMN requested bigint NOT NULL DEFAULT 0,
    ADD COLUMN written   bigint NOT NULL DEFAULT 0,
    ADD COLUMN states    jsonb  NOT NULL DEFAULT '[]',
    ADD COLUMN abandoned jsonb  NOT NULL DEFAULT '[]';
COMMENT ON COLUMN intake_logs.requested IS 'Number of the last request to write all acknowledged rows to the table, and to remove them from the log.';
COMMENT ON COLUMN intake_logs.written IS 'Number of the last request that was fulfilled.';
COMMENT ON COLUMN intake_logs.states IS 'Next offsets and positions of clients of the last two turns: the table has all rows of one of them. For `archiver abandon`.';
COMMENT ON COLUMN intake_logs.abandoned IS 'Logs that were given up, with folder and time. Their rows were recorded as lost, so they are never taken again.';
