"""Schema registries: their client, the ids and envelopes of records, contexts and subjects. Independent of formats.

What a registered schema means belongs to the package of its format beside this one.
"""
