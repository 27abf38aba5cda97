"""What a person sees in the terminal while they link an account: it fits, and cameras can read it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from os import terminal_size

import pytest

from palaver.cli.linking_screen import LinkingScreen
from palaver.cli.output import get_display_width
from palaver.delivery.model import LinkingPrompt
from palaver.operation.qr_code import make_qr_code

SIGNAL = "sgnl://linkdevice?uuid=9aXw3v0m2Tn1JqKc5bEd7g%3D%3D&pub_key=BUi6rtDkq0pA1nZr1E9w3c%2F8mQyH5sVt7xL4oG2bKj1c"
WHATSAPP = "2@" + "aB3/" * 20 + "," + "cD4+" * 11 + "," + "eF5=" * 11 + "," + "gH6/" * 11 + ",1"
INSTRUCTIONS = "Open Signal on your phone: Settings → Linked devices → Link new device, and scan this code."
COLORS = re.compile(r"\x1b\[38;5;(16|231);48;5;(16|231)m")


def make_screen(qr_text: str | None = SIGNAL, code: str | None = "ABCD-1234", **fields: datetime) -> LinkingScreen:
    return LinkingScreen("Signal", LinkingPrompt(instructions=INSTRUCTIONS, qr_text=qr_text, code=code, **fields))


def render(screen: LinkingScreen, columns: int, lines: int) -> list[str]:
    text = screen.render(terminal_size((columns, lines)), has_blocks=True)
    shown = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.split("\n")]
    assert len(shown) <= lines
    assert max(map(get_display_width, shown)) <= columns
    return text.split("\n")


def read_squares(lines: list[str]) -> list[str]:
    """Return the rows of a QR code as a camera sees them, dark as 1."""
    rows: list[str] = []
    for line in (each for each in lines if "▀" in each):
        upper = lower = ""
        colors = ("", "")
        for piece in re.findall(r"\x1b\[38;5;\d+;48;5;\d+m|▀", line):
            if match := COLORS.fullmatch(piece):
                colors = (match[1], match[2])
            else:
                upper, lower = upper + "01"[colors[0] == "16"], lower + "01"[colors[1] == "16"]
        rows += [upper, lower]
    return rows


def strip_margin(rows: list[str]) -> list[str]:
    dark = [index for index, row in enumerate(rows) if "1" in row]
    left = min(row.index("1") for row in rows if "1" in row)
    right = max(row.rindex("1") for row in rows if "1" in row)
    assert dark[0] >= 2
    assert len(rows) - dark[-1] > 2
    assert left >= 2
    assert len(rows[0]) - right > 2
    return [row[left : right + 1] for row in rows[dark[0] : dark[-1] + 1]]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 60), (50, 60)])
def test_the_code_of_signal_fits_with_its_words_and_is_dark_on_light(columns: int, lines: int) -> None:
    shown = render(make_screen(), columns, lines)
    assert strip_margin(read_squares(shown)) == list(make_qr_code(SIGNAL))
    words = " ".join(" ".join(re.sub(r"\x1b\[[0-9;]*m|▀", " ", line) for line in shown).split())
    assert INSTRUCTIONS in words
    assert "Code: ABCD-1234" in words


def test_a_window_that_is_too_small_is_told_and_the_code_to_type_is_shown() -> None:
    shown = render(make_screen(WHATSAPP), 80, 24)
    text = " ".join(shown)
    assert "▀" not in text
    assert re.search(r"The QR code needs a window of \d+ × \d+ characters; this one has 80 × 24\.", text)
    needed = re.search(r"window of (\d+) × (\d+)", text)
    assert needed
    assert "Code: ABCD-1234" in text
    larger = render(make_screen(WHATSAPP), int(needed[1]), int(needed[2]))
    assert strip_margin(read_squares(larger)) == list(make_qr_code(WHATSAPP))


def test_a_code_to_type_alone_and_when_it_expires() -> None:
    expires_at = datetime(2026, 1, 1, 12, 30, 5, tzinfo=UTC)
    text = "\n".join(render(make_screen(None, expires_at=expires_at), 40, 24))
    assert "Code: ABCD-1234" in text
    assert f"Valid until {expires_at.astimezone():%H:%M:%S}" in text


def test_a_pipe_gets_the_code_without_colors_and_a_terminal_without_blocks_the_words() -> None:
    text = make_screen().render(None, has_blocks=True)
    assert "\x1b" not in text
    assert "█" in text
    plain = make_screen().render(terminal_size((80, 24)), has_blocks=False)
    assert "▀" not in plain
    assert "Open Platforms on the page" in plain


def test_a_text_that_is_too_long_for_a_code_shows_the_words() -> None:
    assert make_qr_code("x" * 5000) == ()
    assert "Code: ABCD-1234" in "\n".join(render(make_screen("x" * 5000), 80, 24))


def test_what_a_platform_says_cannot_control_the_terminal() -> None:
    prompt = LinkingPrompt(instructions="Scan\x1b]0;owned\x07 it\x1b[2J", code="A\x1b[31mB")
    text = LinkingScreen("Signal", prompt).render(terminal_size((80, 24)), has_blocks=True)
    assert "\x1b" not in text
    assert "Code: AB" in text
