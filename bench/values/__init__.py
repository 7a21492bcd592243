"""The kernel's benchmarks: shapes of messages, peers, and timing."""
