-- What a schema registry has said, so that archiving goes on while it is down (docs/schema-registry.md).

CREATE TABLE registered_schemas (
    topic_id   integer     NOT NULL REFERENCES topics,
    registry   text        NOT NULL,
    schema_id  bigint      NOT NULL,
    files      bytea       NOT NULL,
    seen_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, registry, schema_id)
);
COMMENT ON TABLE registered_schemas IS 'Schemas that the topic''s subjects or records have named, by the registry''s id.';
COMMENT ON COLUMN registered_schemas.registry IS 'The registry''s addresses, without user and password.';
COMMENT ON COLUMN registered_schemas.files IS 'A FileDescriptorSet: the schema and all that it refers to.';

CREATE TABLE registered_subjects (
    topic_id   integer     NOT NULL,
    registry   text        NOT NULL,
    subject    text        NOT NULL,
    schema_id  bigint      NOT NULL,
    asked_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, registry, subject),
    FOREIGN KEY (topic_id, registry, schema_id) REFERENCES registered_schemas
);
COMMENT ON TABLE registered_subjects IS 'The latest schema of each subject, when the registry was last asked.';
