"""What operators watch: Prometheus metrics, health, and where traces go. Knows nothing of jobs."""
