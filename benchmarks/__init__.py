"""Benchmarks of Palaver and its peers on the same workloads: `python -m benchmarks`."""
