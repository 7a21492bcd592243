"""What the bytes mean: Protobuf schemas as Iceberg types with stable field ids, and the kernel between them."""
