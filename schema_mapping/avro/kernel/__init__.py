"""The loops that read and write Avro's binary encoding: `tables` for the compiled writers, then decoder and encoder.

Values are decoded straight into growing Arrow columns, in one pass. What a refused value has appended is taken back.
"""
