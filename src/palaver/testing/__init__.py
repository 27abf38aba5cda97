"""Tools for testing what is built on Palaver; public, and used by Palaver's own tests."""

from palaver.domain.crash_points import on_point
from palaver.testing.agent import ScriptedAgent
from palaver.testing.clock import FakeClock

__all__ = ["FakeClock", "ScriptedAgent", "on_point"]
