"""The ids of people on WhatsApp: a phone number without `+`, or a BSUID, which belongs to one business."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"[0-9]{5,20}")
_BSUID = re.compile(r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}")


def is_number(text: object) -> bool:
    return isinstance(text, str) and _NUMBER.fullmatch(text) is not None


def is_bsuid(text: object) -> bool:
    return isinstance(text, str) and _BSUID.fullmatch(text) is not None
