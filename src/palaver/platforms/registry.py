"""Finds the platforms that are installed, and creates an adapter for every account that is set up."""
