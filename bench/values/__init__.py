"""What the benchmarks of the kernel measure: shapes of messages, peers to compare with, and fair timing."""
