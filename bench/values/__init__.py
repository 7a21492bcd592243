"""The benchmarks of the kernel: shapes of messages, peers, and timing."""
