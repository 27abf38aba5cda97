"""A public test kit for programs that use Palaver; Palaver's own tests use it too."""

from palaver.domain.crash_points import set_crash_hook
from palaver.testing.agent import ScriptedAgent
from palaver.testing.clock import FakeClock

__all__ = ["FakeClock", "ScriptedAgent", "set_crash_hook"]
