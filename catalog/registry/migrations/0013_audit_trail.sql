-- The audit trail: a chain of entries for each table. Entries wait here until they are in the journal's store.

CREATE TABLE audit_chains (
    topic_id           integer     PRIMARY KEY REFERENCES topics,
    table_uuid         uuid        NOT NULL,
    entries            bigint      NOT NULL,
    last_hash          text        NOT NULL,
    digest             text,
    schema_version     integer     NOT NULL DEFAULT 0,
    checkpoint_entries bigint      NOT NULL DEFAULT 0,
    checkpoint_hash    text,
    checkpoint_at      timestamptz
);
COMMENT ON TABLE audit_chains IS 'Where each trail ends. The row is the lock that keeps a trail one chain.';
COMMENT ON COLUMN audit_chains.digest IS 'The digest of all records that were archived and not taken out; null where it is not known.';

CREATE TABLE audit_entries (
    topic_id   integer     NOT NULL REFERENCES topics,
    seq        bigint      NOT NULL,
    act_id     text        NOT NULL,
    range_ids  text[]      NOT NULL DEFAULT '{}',
    line       text,
    recorded   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, seq),
    UNIQUE (topic_id, act_id)
);
COMMENT ON COLUMN audit_entries.line IS 'The entry, until it is in the store; null from then on.';
CREATE INDEX audit_entries_waiting ON audit_entries (topic_id, seq) WHERE line IS NOT NULL;

CREATE TABLE audit_intents (
    topic_id   integer     NOT NULL REFERENCES topics,
    act_id     text        NOT NULL,
    commit_id  text        NOT NULL,
    parent     bigint,
    entry      jsonb       NOT NULL,
    begun      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic_id, act_id)
);
COMMENT ON TABLE audit_intents IS 'Commits that are about to be made and that nothing else in the registry remembers.';
