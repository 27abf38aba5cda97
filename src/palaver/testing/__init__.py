"""Tools for testing what is built on Palaver; public, and used by Palaver's own tests."""

from palaver.testing.clock import FakeClock

__all__ = ["FakeClock"]
