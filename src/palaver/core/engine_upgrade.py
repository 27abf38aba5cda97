"""What opening a store does if an older version of Palaver wrote it."""

from __future__ import annotations

from enum import Enum, auto


class Upgrade(Enum):
    """Whether a store is brought up to date when it is opened. A new one always is."""

    REFUSE = auto()  # raise `UpgradeRequired`
    ALONE = auto()  # yes, unless a server of an older version uses it
    TAKE_OVER = auto()  # yes; servers of older versions stop using it, where they can be told to
