"""Settings, tested with real files."""
