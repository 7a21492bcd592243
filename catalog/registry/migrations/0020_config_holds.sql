-- How often `hold = true` of the configuration was seen to come or to go, so that each change gets one audit entry.

ALTER TABLE audit_chains ADD COLUMN config_holds integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN audit_chains.config_holds IS 'How many entries say that hold = true came or went in the configuration: odd while it is there.';
