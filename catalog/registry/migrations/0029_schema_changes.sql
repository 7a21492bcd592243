-- Schema changes that break queries, which wait for approval or have it (archiver schema approve).

CREATE TABLE schema_changes (
    topic_id      integer     NOT NULL REFERENCES topics,
    base_version  integer     NOT NULL,
    fingerprint   text        NOT NULL,
    changes       jsonb       NOT NULL,
    waits_since   timestamptz NOT NULL DEFAULT now(),
    approved_at   timestamptz,
    approved_by   text,
    PRIMARY KEY (topic_id, base_version, fingerprint)
);
COMMENT ON TABLE schema_changes IS 'Schema changes that may not be applied before somebody approves them (archiver schema approve TOPIC).';
COMMENT ON COLUMN schema_changes.base_version IS 'The newest schema version when the change was first seen. The approval counts for changes of this version alone.';
COMMENT ON COLUMN schema_changes.fingerprint IS 'The fingerprint that the new schema version would have.';
COMMENT ON COLUMN schema_changes.changes IS 'The changes that break queries, as in schema_history.';
COMMENT ON COLUMN schema_changes.approved_at IS 'NULL while the change waits.';
