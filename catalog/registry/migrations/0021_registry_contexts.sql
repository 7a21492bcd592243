-- Schema ids count within a context of the registry, and GUIDs count in all of them (docs/schema-registry.md).

-- Ids of topics with a subject in a named context were kept as ids of the default context. They are asked for again.
DELETE FROM registered_subjects AS known USING registered_subjects AS named
    WHERE named.subject LIKE ':.%' AND (known.topic_id, known.registry) = (named.topic_id, named.registry);
DELETE FROM registered_schemas AS known WHERE NOT EXISTS (
    SELECT FROM registered_subjects AS subject
    WHERE (subject.topic_id, subject.registry) = (known.topic_id, known.registry)
);

ALTER TABLE registered_subjects DROP CONSTRAINT registered_subjects_topic_id_registry_schema_id_fkey;
ALTER TABLE registered_schemas ADD COLUMN context text NOT NULL DEFAULT '';
ALTER TABLE registered_subjects ADD COLUMN context text NOT NULL DEFAULT '';
ALTER TABLE registered_schemas DROP CONSTRAINT registered_schemas_pkey;
ALTER TABLE registered_schemas ADD PRIMARY KEY (topic_id, registry, context, schema_id);
ALTER TABLE registered_subjects ADD FOREIGN KEY (topic_id, registry, context, schema_id) REFERENCES registered_schemas;
COMMENT ON COLUMN registered_schemas.context IS 'The context that the id counts in, such as '':.team:''. Empty: the default context.';

CREATE TABLE registered_guids (
    topic_id   integer     NOT NULL REFERENCES topics,
    registry   text        NOT NULL,
    guid       uuid        NOT NULL,
    files      bytea       NOT NULL,
    seen_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, registry, guid)
);
COMMENT ON TABLE registered_guids IS 'Schemas that the topic''s records have named by GUID.';
COMMENT ON COLUMN registered_guids.files IS 'A FileDescriptorSet: the schema and all that it refers to.';
