"""Random messages to gateways that are killed, paused and started in pairs, at random moments and crash points."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from scenarios.gateway_harness import KILLED
from scenarios.gateway_process import MEMBERS
from support.crashing import list_crash_points

if TYPE_CHECKING:
    from random import Random

    from scenarios.gateway_harness import FakePlatform, GatewayLauncher, GatewayProcess, UserMessage

AREAS = ("inbox.", "call.", "turn.", "delivery.", "preview.")  # other crash points have kill tests of their own
SHUTDOWN_POINTS = {"turn.before_release", "turn.released"}  # passed only by a gateway that is asked to stop
MAX_PAUSE_SECONDS = 1.2


class RandomKiller:
    """Chooses messages, moments and crash points at random."""

    def __init__(self, launcher: GatewayLauncher, chance: Random) -> None:
        self._launcher = launcher
        self._random = chance
        self._message_count = 0

    def add_messages(self, platform: FakePlatform) -> None:
        """Let several people write at once."""
        for user in self._random.sample(MEMBERS, self._random.randint(2, 3)):
            kinds = self._random.choices(["plain", "act", "/steer"], [5, 3, 2], k=self._random.randint(1, 2))
            platform.add_messages(*(self._build_text(kind) for kind in kinds), user=user)
        platform.add_messages(self._build_text(self._random.choice(["plain", "plain", "long"])), user="carol")

    def _build_text(self, kind: str) -> str:
        self._message_count += 1
        return f"{kind} {self._message_count}"

    def run_and_kill(self, platform: FakePlatform) -> None:
        """Run a gateway and kill it at a random crash point, or at a random time."""
        crash_at = self._choose_crash()
        gateway = self._launcher.launch(platform.build_options(crash_at=crash_at))
        platform.send_messages(gateway, *self.choose_duplicates(platform))
        if crash_at:
            gateway.request({"action": "wait_until_idle"})
        else:
            self._wait(0.12)
            os.kill(gateway.pid, signal.SIGKILL)
        while (report := gateway.read_report()) is not None:
            platform.handle_report(report)
            if "idle" in report:  # it did not pass the crash point often enough
                os.kill(gateway.pid, signal.SIGKILL)
        assert gateway.wait_for_exit() == KILLED
        platform.save_drafts()

    def run_two_and_kill(self, platform: FakePlatform, lease_seconds: float) -> None:
        """Run two gateways, pause them at random times, some beyond the end of their leases, and kill them."""
        gateways = [
            self._launcher.launch(platform.build_options(crash_at=self._choose_crash(), lease_seconds=lease_seconds))
            for _ in range(2)
        ]
        self._random.shuffle(gateways)
        platform.send_messages(gateways[0])
        for gateway in gateways:
            gateway.request(*(message.request for message in self.choose_duplicates(platform)))
        for _ in range(self._random.randint(0, 3)):
            self._wait(0.1)
            self._pause(self._random.choice(gateways))
        for gateway in gateways:
            self._wait(0.12)
            os.kill(gateway.pid, signal.SIGKILL)
        for gateway in gateways:
            while (report := gateway.read_report()) is not None:
                platform.handle_report(report)
            assert gateway.wait_for_exit() == KILLED
        platform.save_drafts()

    def _pause(self, gateway: GatewayProcess) -> None:
        """Stop a process for a while; it is not reaped before `wait_for_exit`, so the signal reaches no other."""
        os.kill(gateway.pid, signal.SIGSTOP)
        self._wait(MAX_PAUSE_SECONDS)
        os.kill(gateway.pid, signal.SIGCONT)

    def _choose_crash(self) -> list[str | int]:
        """Choose a crash point and at which passing of it a gateway is killed; or none, for a kill at a random time."""
        points = sorted(list_crash_points(*AREAS))
        crash_at: list[str | int] = [self._random.choice(points), self._random.randint(1, 8)]
        return crash_at if self._random.random() < 0.5 and crash_at[0] not in SHUTDOWN_POINTS else []

    def _wait(self, max_seconds: float) -> None:
        time.sleep(self._random.uniform(0, max_seconds))

    def choose_duplicates(self, platform: FakePlatform) -> list[UserMessage]:
        """Choose acknowledged messages that the platform sends once more, as platforms sometimes do."""
        acknowledged = [message for message in platform.messages[-20:] if message.id in platform.outcomes]
        return self._random.sample(acknowledged, min(len(acknowledged), self._random.randint(0, 2)))

    def choose_kill_count(self) -> int:
        """Choose how many gateways are killed one after the other."""
        return self._random.choices([1, 2, 3], [6, 3, 1])[0]
