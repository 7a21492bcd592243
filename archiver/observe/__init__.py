"""What an archiver shows of itself: to people, as JSON lines, as metrics, as health and as traces."""
