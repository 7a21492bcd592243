-- Users of `archiver serve kafka`, with the keys that SCRAM (RFC 5802) stores in place of a password.

CREATE TABLE served_users (
    name       text        NOT NULL CHECK (name <> ''),
    mechanism  text        NOT NULL CHECK (mechanism IN ('SCRAM-SHA-256', 'SCRAM-SHA-512')),
    salt       bytea       NOT NULL CHECK (length(salt) >= 16),
    iterations integer     NOT NULL CHECK (iterations >= 4096),
    stored_key bytea       NOT NULL,
    server_key bytea       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, mechanism)
);

-- What salts of users who aren't known are made with: each node must show the same one.
CREATE TABLE served_users_secret (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    secret  bytea   NOT NULL
);
INSERT INTO served_users_secret (secret) VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
