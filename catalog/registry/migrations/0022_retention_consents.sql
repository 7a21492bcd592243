-- Consent to limits that retire within a day or more than half of a topic, once for each value of the limits.

CREATE TABLE retention_consents (
    topic_id   integer     NOT NULL REFERENCES topics,
    limits     text        NOT NULL,
    reason     text        NOT NULL,
    asked_at   timestamptz NOT NULL DEFAULT now(),
    given_at   timestamptz,
    given_by   text,
    PRIMARY KEY (topic_id, limits)
);
COMMENT ON TABLE retention_consents IS 'Limits of a topic that may not be applied before somebody agrees (archiver expire TOPIC --yes).';
COMMENT ON COLUMN retention_consents.limits IS 'The limits as the configuration has them: retention = "1h".';
COMMENT ON COLUMN retention_consents.reason IS 'Why they need consent.';
COMMENT ON COLUMN retention_consents.given_at IS 'NULL while they wait for consent.';
