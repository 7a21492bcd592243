-- When offsets were noted as gone, and files as covered: the index drops only runs that can have a value of them (docs/adr/0112).

ALTER TABLE erased_offsets ADD COLUMN noted_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
ALTER TABLE accepted_offsets ADD COLUMN noted_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
ALTER TABLE term_run_files ADD COLUMN noted_ms bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
COMMENT ON COLUMN erased_offsets.noted_ms IS 'When the row was added, in ms since 1970: the records had left the table by then. After a migration or a rebuild it is later.';
COMMENT ON COLUMN accepted_offsets.noted_ms IS 'When the row was added, in ms since 1970: the rows were missing by then. After a migration or a rebuild it is later.';
COMMENT ON COLUMN term_run_files.noted_ms IS 'When the row was added, in ms since 1970.';
COMMENT ON COLUMN term_runs.begun_ms IS 'No record that had left the table by then is in the run, by the clock of Postgres, in ms since 1970.';
