"""`archiver verify`: reads tables whole and shows that they have what was archived. Changes nothing.

`job` runs `topic_run` for each topic: `sources` reads table (or `lost_catalog`), journal and registry, `evidence` makes
ranges of them, `choice` selects some, `reading` has Spark tasks read files (`file`, `file_claims`, `tally`), going on
where `state` says, `judge` decides range by range, `summaries` holds snapshots against both, `against_kafka` compares
with the brokers. What comes out are `findings` in a `report`, written as a `document` and a `page`.
"""

__all__ = ["choice", "document", "job", "report"]
