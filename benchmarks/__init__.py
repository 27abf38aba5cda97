"""Palaver and its peers on the same work: `python -m benchmarks`."""
