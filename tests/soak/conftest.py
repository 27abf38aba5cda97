"""The seed of random tests, as a fixture."""

from soak.seed import seed

__all__ = ["seed"]
