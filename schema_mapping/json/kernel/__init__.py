"""The kernels of JSON: values to Arrow columns, and rows to the bytes that their producers wrote."""
