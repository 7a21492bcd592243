"""`archiver verify`: read tables whole and show that they have what was archived. Changes nothing.

Per topic: `sources` and `evidence` say what must be there, `choice` selects ranges, `reading` has files read, `judge`
decides, `against_kafka` compares with the brokers; `findings` go into a `report`, written as a `document` and a `page`.
"""

__all__ = ["choice", "document", "job", "report"]
