"""The hot loops between Protobuf bytes and Arrow buffers, interpreting the tables of a compiled mapping."""
