"""A first configuration, and checks of a configuration."""

__all__ = ["check", "cluster_topics", "findings", "flight_checks", "partition_checks", "spread_samples", "write_config"]
