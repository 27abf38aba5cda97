"""Decides whether a mail is from the address in its From header. Pure.

Anyone can write any From header. What counts is the result of DMARC that our own server has found, or that the sender
has signed in to our own server, in the header field Authentication-Results (RFC 8601). Senders can write such fields,
too: servers put theirs above what has come, so only the topmost field with our server's name counts, whatever the
others say. Senders also choose texts that servers repeat in their fields, in quotes: nothing in quotes counts.
"""

from __future__ import annotations

import re

from palaver.platforms.email.headers import (
    Mailbox,
    MailHeader,
    find_comment_end,
    get_domain,
    normalize_address,
    parse_mailboxes,
)

MAX_RESULTS_CHARS = 10_000

_SERVER = re.compile(r"\s{0,20}(?:\([^()]{0,200}\)\s{0,20})?\"?([^\s;()\"]{1,255})")
_WORD = re.compile(r"[\w.@-]{1,255}")
_PIECE = re.compile(r'\\.?|"(?P<quoted>(?:[^"\\]|\\.)*+)"|\(|[^\\"(]++', re.DOTALL)
_PROPERTY = re.compile(r"\bheader\.from\s*=\s*\"?([^\s;\"]{1,255})", re.IGNORECASE)
_SIGNED_IN = re.compile(r"\bsmtp\.auth\s*=\s*\"?([^\s;\"]{1,255})", re.IGNORECASE)


class SenderRefused(Exception):
    """It is not known who has sent a mail. The text says why, and what to do."""


def find_sender(header: MailHeader) -> Mailbox:
    """Return the one sender that the From header names. Raises SenderRefused."""
    if not header.is_whole:
        raise SenderRefused("The header of the mail is damaged or too long: it may hide another sender.")
    values = header.get_all("from")
    if len(values) != 1:
        raise SenderRefused(f"The mail has {len(values)} From headers instead of one.")
    mailboxes = parse_mailboxes(values[0], allows_groups=False)
    if mailboxes is None or len(mailboxes) != 1:
        raise SenderRefused("The From header does not name exactly one address.")
    return mailboxes[0]


def verify_sender(header: MailHeader, address: str, authserv_id: str | None) -> None:
    """Check that our own server has verified the sender by DMARC. Raises SenderRefused."""
    fields = header.get_all("authentication-results")
    if authserv_id is None:
        names = [name for name in map(_read_server, fields) if name]
        hint = (
            f" The topmost Authentication-Results header of this mail is from {names[0]!r}. Anyone may have written "
            "it: use this name only if it is that of your server."
            if names
            else ""
        )
        raise SenderRefused(
            f"Set authserv_id to the name of your mail server: without it, no sender can be verified.{hint}"
        )
    for field in fields:
        name = _read_server(field) or ""
        if name == authserv_id or (authserv_id.startswith("*.") and name.endswith(authserv_id[1:])):
            _check_results(field, address)
            return
    raise SenderRefused(f"The mail has no Authentication-Results header from {authserv_id!r}.")


def _read_server(field: str) -> str | None:
    """Return the name of the server that has written a field."""
    match = _SERVER.match(field)
    return match[1].lower() if match and "=" not in match[1] else None


def _check_results(field: str, address: str) -> None:
    if len(field) > MAX_RESULTS_CHARS:
        raise SenderRefused("The Authentication-Results header is too long.")
    domain = get_domain(address)
    _, _, results = _remove_comments(field).partition(";")
    methods = [each.strip() for each in results.split(";")]
    if any(_is_own_user(each, address) for each in methods):
        return
    found = [each for each in methods if each.lower().startswith("dmarc")]
    verdicts = [_read_verdict(each) for each in found]
    if verdicts != ["pass"]:
        raise SenderRefused(
            f"DMARC did not pass for {domain} (result: {', '.join(verdicts) or 'none'}): the sender may be forged, or "
            "its domain has no DMARC record."
        )
    checked = _PROPERTY.search(found[0])
    if checked is None or checked[1].lower().rstrip(".").rpartition("@")[2] != domain:
        raise SenderRefused(f"DMARC has passed, but not for the domain {domain} of the From header.")


def _is_own_user(result: str, address: str) -> bool:
    """Return whether our server says that the sender has signed in there, with this address."""
    user = _SIGNED_IN.search(result)
    is_passed = result.lower().startswith("auth=") and _read_verdict(result) == "pass"
    return is_passed and user is not None and normalize_address(user[1]) == address


def _read_verdict(result: str) -> str:
    _, _, value = result.partition("=")
    words = value.split()
    return words[0].lower() if words else "none"


def _remove_comments(text: str) -> str:
    """Return a field without comments, and without quoted texts unless they are single words. Raises SenderRefused."""
    kept: list[str] = []
    position: int | None = 0
    while position is not None and (match := _PIECE.match(text, position)) is not None:
        position = match.end()
        quoted = match["quoted"]
        if match[0] == "(":
            position = find_comment_end(text, position)
        elif quoted is not None:
            kept.append(quoted if _WORD.fullmatch(quoted) else "_")
        elif not match[0].startswith("\\"):
            kept.append(match[0])
    if position != len(text):
        raise SenderRefused("The Authentication-Results header is damaged.")
    return "".join(kept)
