"""An invitation is read as one line, whatever calendar has written it."""

from __future__ import annotations

import pytest

from palaver.platforms.email.invitation import read_invitation


def make_event(*lines: str) -> str:
    return "\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"])


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["DTSTART:20261120T110000Z", "SUMMARY:Tea"], "[Invitation: Tea; 2026-11-20 11:00 UTC]"),
        (["DTSTART;VALUE=DATE:20261120", "DTEND;VALUE=DATE:20261121"], "[Invitation: 2026-11-20 – 2026-11-21]"),
        (['DTSTART;TZID="W. Europe":20261120T110000'], "[Invitation: 2026-11-20 11:00]"),
        (["DTSTART:20261120", "RRULE:FREQ=WEEKLY"], "[Invitation: 2026-11-20; repeated: FREQ=WEEKLY]"),
        (
            ["DTSTART:20261120", "BEGIN:VALARM", "SUMMARY:no", "END:VALARM", "SUMMARY:yes"],
            "[Invitation: yes; 2026-11-20]",
        ),
        (["DTSTART:tomorrow", r"SUMMARY:a\nb\;c"], "[Invitation: a b;c; tomorrow]"),
        (["SUMMARY:no time"], ""),
    ],
)
def test_an_event_is_one_line(lines: list[str], text: str) -> None:
    assert read_invitation(make_event(*lines)) == text


@pytest.mark.parametrize("piece", ["BEGIN:VEVENT\n", "\n ", "DTSTART:2\n", ";", 'A;B="', "BEGIN:VEVENT\nSUMMARY;A=b"])
def test_adversarial_calendars_are_read_in_time(piece: str) -> None:
    assert read_invitation(f"BEGIN:VEVENT\n{piece * (200_000 // len(piece))}") is not None
