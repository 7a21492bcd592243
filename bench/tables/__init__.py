"""Tables that benchmarks plan in, made up."""
