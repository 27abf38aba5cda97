"""What a webhook can do: exchange texts. Its settings say for how long the receiver recognizes a key."""

from __future__ import annotations

from typing import Final

from palaver.delivery.capabilities import Capabilities

CAPABILITIES: Final = Capabilities()
