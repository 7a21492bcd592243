"""Avro's binary encoding, by compiled `tables`.

Values go straight to growing Arrow columns. A refused value's are taken back.
"""
