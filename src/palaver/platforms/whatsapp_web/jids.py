"""Addresses of WhatsApp as texts. Imported by the child, too: only the standard library.

A person has a number (`4917012345678@s.whatsapp.net`) and a LID (`231234567890@lid`), which hides the number; a group
has `120363041234567890@g.us`. Each device of a person adds its number: `4917012345678:3@s.whatsapp.net`.
"""

from __future__ import annotations

import re
from typing import Final

PHONE_SERVER: Final = "s.whatsapp.net"
LID_SERVER: Final = "lid"
GROUP_SERVER: Final = "g.us"

_JID = re.compile(r"(?P<user>[^@:.]+)(?:\.\d+)?(?::\d+)?@(?P<server>[a-z.]+)")
_PHONE_NUMBER = re.compile(r"\+?(?P<digits>[0-9]{5,20})")


def strip_device(jid: str | None) -> str | None:
    """Return the address of a person or group without a device; None for what is none."""
    found = _JID.fullmatch(jid or "")
    return f"{found['user']}@{found['server']}" if found else None


def is_group(jid: str) -> bool:
    return jid.endswith(f"@{GROUP_SERVER}")


def is_phone(jid: str) -> bool:
    return jid.endswith(f"@{PHONE_SERVER}")


def shorten_jid(jid: str) -> str:
    """Return an address as Palaver keeps it: a bare number for a person whose number is known."""
    return jid.removesuffix(f"@{PHONE_SERVER}")


def expand_jid(text: str) -> str | None:
    """Return the address that Palaver's form of it stands for; None if it is none."""
    number = _PHONE_NUMBER.fullmatch(text)
    return f"{number['digits']}@{PHONE_SERVER}" if number else strip_device(text)


def order_jids(*jids: str | None) -> list[str]:
    """Return the different addresses of one person without devices, a number before a LID."""
    known = dict.fromkeys(filter(None, map(strip_device, jids)))
    return sorted(known, key=lambda jid: not is_phone(jid))
