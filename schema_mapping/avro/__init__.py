"""Avro as a value format: reads schemas, turns types into columns, and decodes and encodes values by writer schemas.

What belongs here: everything that knows Avro's schemas or binary encoding, and the kernels (`kernel/`) that read and
write it. What doesn't: field ids and evolution, which are the same for every format (`columns`). Other rooms use
`schema` for schemas, and mappings through `schema_mapping`.
"""

__all__ = ["schema"]
