"""What the benchmarks of the kernel measure, and beside whom: shapes of messages, peers, and a fair clock."""
