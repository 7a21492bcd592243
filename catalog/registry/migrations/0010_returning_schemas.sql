-- A schema that comes to stay again is a version once more, with the fingerprint it has (docs/schema-evolution.md).

ALTER TABLE schema_versions DROP CONSTRAINT schema_versions_topic_id_fingerprint_key;

ALTER TABLE topics
    ADD COLUMN returning_version integer,
    ADD COLUMN returning_since timestamptz,
    ADD COLUMN returning_asks integer;
COMMENT ON COLUMN topics.returning_version IS 'An older schema version that is asked for again, and no other one since.';
COMMENT ON COLUMN topics.returning_since IS 'When it was first asked for again.';
COMMENT ON COLUMN topics.returning_asks IS 'How often it was asked for since.';
