"""Schema registries: client, ids, envelopes, contexts and subjects. Independent of formats."""
