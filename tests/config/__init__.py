"""The settings, tried out on real files."""
