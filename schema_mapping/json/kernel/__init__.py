"""Values to Arrow columns, and rows to the original bytes."""
