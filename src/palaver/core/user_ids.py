"""Which texts are ids of users on a platform: they never change, and no other user can take them over, unlike names."""

from __future__ import annotations

import re
from typing import Final

from palaver.core.source import Platform

_ID_RULES: Final = {
    Platform.TELEGRAM: (re.compile(r"[0-9]{1,20}"), "a number such as 123456789"),
    Platform.DISCORD: (re.compile(r"[0-9]{5,20}"), "a number such as 80351110224678912"),
    Platform.SLACK: (re.compile(r"[UW][A-Z0-9]{2,20}"), "an id such as U012AB3CD"),
    Platform.EMAIL: (
        re.compile(r"[^\s@,;<>\"A-Z]+@[a-z0-9]+(?:[.-]+[a-z0-9]+)*"),
        "the address in lower case, such as ada@example.org",
    ),
    Platform.MATRIX: (re.compile(r"@[^\s:@]+:[^\s@]+"), "an id with its server, such as @ada:example.org"),
    Platform.SIGNAL: (
        re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
        "the lowercase UUID that the log shows, not the phone number, which can change hands",
    ),
    Platform.WHATSAPP: (
        re.compile(r"[0-9]{5,20}|[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}"),
        "a number such as 4917012345678, without +",
    ),
    Platform.WHATSAPP_WEB: (re.compile(r"[0-9]{5,20}(?:@lid)?"), "a number such as 4917012345678, without +"),
}


def find_user_id_problem(platform: Platform, user_id: str) -> str | None:
    """Return why a text is no id of a user on this platform; None if it is one."""
    pattern, allowed = _ID_RULES.get(platform, (re.compile(r"[^@\s]\S*"), "the id that the platform gives a user"))
    if pattern.fullmatch(user_id):
        return None
    return f"{user_id!r} is not a user's id. Names can be changed and taken over, so use {allowed}"
