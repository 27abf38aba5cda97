"""Finds what a mail quotes, and cuts what its conversation already has. Pure, and linear in the length of the texts.

Where a quote begins is seen by its look: a line such as "On 16 Nov 2026, Ada wrote:", the header of a mail as Outlook
writes it, "Original message", or lines with `>`. The look alone cuts nothing: people forward mails, quote others and
write such lines themselves. A quote is cut only if it is the whole text of a message that the conversation has, by the
author that the quote names. Mail programs break lines anew and lose formats, so only letters, digits and links count.

Always true: what is forwarded stays. If a person has written between or below quoted lines, everything stays: the
answers make no sense without the questions.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from palaver.sessions.inbound import KnownText

MAX_INTRO_CHARS = 400
MAX_INTRO_LINES = 3
MAX_HEADER_LINES = 14  # long lists of recipients are folded
MIN_HEADER_FIELDS = 3
MIN_ANONYMOUS_CHARS = 60  # letters and digits of a quote that need not name its author: that is no coincidence
MIN_NAME_CHARS = 3

_MARKS = re.compile(r"[ \t]{0,3}>[> \t\xa0]*")
# The words with which mail programs end the line before a quote, in the languages of their menus.
_WROTE = re.compile(
    r"wrote|schrieb|écrit|ha scritto|escribió|ha escrito|escreveu|schreef|geschreven|skrev|pisze|napisał|kirjoitti"
    r"|napsal|пишет|написал|пише|yazdı|írta|a scris|写道|寫道|書きました|작성"
)
_FIRST_WORDS = ("on ", "am ", "le ", "il ", "el ", "op ", "em ", "den ", "w dniu ", "dnia ", "dne ", "в ", "tarih")
_TIME = re.compile(r"\d{1,2}[:.h]\d\d|(?<!\d)(?:19|20)\d\d(?!\d)|\d{1,2}[./-]\d{1,2}[./-]\d\d")
_ADDRESS = re.compile(r"[^\s<>\[\]()\"',;:]{1,64}@[^\s<>\[\]()\"',;:]{1,255}")
_COLONS = (":", "\uff1a")
_RULE = re.compile(r"[_=\u2013\u2014-]{5,}")
_FRAMED = re.compile(r"-{3,}[ \t]{0,5}([^-\s].{0,80}?)[ \t]{0,5}-{3,}:?")
_REPLY_WORDS = frozenset(
    {
        *(
            "original message",
            "original-nachricht",
            "ursprüngliche nachricht",
            "originalnachricht",
            "message d'origine",
        ),
        *("message d’origine", "message original", "mensaje original", "mensagem original", "messaggio originale"),
        *("oorspronkelijk bericht", "origineel bericht", "ursprungligt meddelande", "originalmeddelande"),
        *("oprindelig meddelelse", "opprinnelig melding", "alkuperäinen viesti", "wiadomość oryginalna"),
        *("oryginalna wiadomość", "původní zpráva", "исходное сообщение", "оригинальное сообщение", "reply message"),
        *("元のメッセージ", "原始邮件", "原始郵件", "özgün ileti", "eredeti üzenet", "mesaj original"),
    }
)
_FORWARD_LINES = (
    *("begin forwarded message", "anfang der weitergeleiteten nachricht", "début du message", "inicio del mensaje"),
    *("início da mensagem", "inizio messaggio", "begin doorgestuurd bericht", "vidarebefordrat brev"),
    *("початок", "начало переадресованного", "rozpoczęcie przekazywanej", "転送されたメッセージ", "以下是转发的邮件"),
)
_FORWARD_SUBJECT = re.compile(
    r"(?:fwd?|wg|tr|rv|enc|i|doorst|vb|vl|vs|pd|fs|пересл|转发|轉寄|転送)\s{0,3}[:\uff1a]", re.IGNORECASE
)
_FIELDS: Final = {
    name: kind
    for kind, names in {
        "from": "from von de da van od från fra lähettäjä от отправитель 差出人 发件人 寄件者 kimden feladó від",
        "date": "date sent gesendet datum envoyé fecha enviado enviado_el enviada enviada_em data inviato verzonden"
        " wysłano skickat sendt dato lähetetty odesláno дата отправлено 送信日時 日付 日時 发送时间 发送日期"
        " 日期 寄件日期 tarih gönderildi elküldve надіслано",
        "to": "to an à a para aan do till til vastaanottaja komu кому 宛先 收件人 收件者 kime címzett",
        "subject": "subject betreff objet asunto assunto oggetto onderwerp temat ämne emne aihe předmět тема 件名 主题"
        " 主旨 konu tárgy",
        "copy": "cc copie copia cópia kopie kopia kopi копия 抄送 副本 reply-to antwort_an",
    }.items()
    for name in names.split()
}
_URL = re.compile(r"(?:https?://|mailto:)[^\s<>()\[\]\"'|]+", re.IGNORECASE)
_REWRITTEN_URL = re.compile(r"safelinks\.protection\.outlook\.com/.{0,20}[?&]url=([^&]+)", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n`]*$", re.MULTILINE)
_SMALL_BULLET = re.compile(r"^[ \t]{0,20}o(?:\t|[ ]{2,})", re.MULTILINE)  # as Outlook writes a list in a list


def is_forward(subject: str) -> bool:
    """Return whether the subject says that a mail is forwarded: Outlook quotes it as it quotes in a reply."""
    return _FORWARD_SUBJECT.match(subject) is not None


class _Line(NamedTuple):
    depth: int  # of the quote that it stands in: how many `>` it has
    text: str


class _Intro(NamedTuple):
    """The lines before a quote, which say who wrote it and when."""

    end: int
    author: str  # in lower case, with everything that stands beside it


class _Quote(NamedTuple):
    start: int  # of its lines, with those that introduce it
    end: int
    intro: str
    text: str


class MailText:
    """The text of a mail: what the person has written, and what they quote."""

    def __init__(self, text: str) -> None:
        self._all_lines = [line.rstrip() for line in text.split("\n")]
        self._lines = [_read_line(line) for line in self._all_lines]
        self._quotes: list[_Quote] = []
        self._has_answers_between = False
        self._find_quotes()

    @cached_property
    def text(self) -> str:
        return "\n".join(self._all_lines).strip()

    @cached_property
    def written_text(self) -> str:
        """What the person has written, judged by its look: all lines that seem to quote are left out."""
        return "\n".join(self._list_written_lines(self._quotes, with_marked_lines=False)).strip()

    @property
    def has_quotes(self) -> bool:
        """Whether there are quotes that may be cut."""
        return bool(self._quotes) and not self._has_answers_between

    def cut_known(self, known: Iterable[KnownText], agent_names: Sequence[str]) -> str:
        """Return the text without the quotes that are whole texts of these messages, whose authors they name."""
        if not self.has_quotes:
            return self.text
        texts = _KnownTexts(known, agent_names)
        cut = [quote for quote in self._quotes if texts.has(quote)]
        return "\n".join(self._list_written_lines(cut)).strip() or self.text

    def list_pieces(self) -> Iterator[tuple[str, str]]:
        """Yield the pieces of the text, each with what introduces it: first what the person has written."""
        yield "", "\n".join(self._list_written_lines(self._quotes))
        for quote in self._quotes:
            yield quote.intro, quote.text

    def _list_written_lines(self, left_out: Sequence[_Quote], *, with_marked_lines: bool = True) -> list[str]:
        kept: list[str] = []
        position = 0
        for quote in [*left_out, _Quote(len(self._lines), len(self._lines), "", "")]:
            numbers = range(position, quote.start)
            kept += [self._all_lines[each] for each in numbers if with_marked_lines or not self._lines[each].depth]
            position = quote.end
        return kept

    def _find_quotes(self) -> None:
        lines = self._lines
        begun: tuple[int, _Intro] | None = None
        number = 0
        while number < len(lines):
            line = lines[number]
            if line.text and self._is_forward(number):
                break
            intro = self._find_intro(number) if line.text else None
            if intro is None and begun is None and line.depth and line.text:
                intro = _Intro(number, "")
            if intro is None:
                number += 1
                continue
            if begun is not None:
                self._add_quote(*begun, number)
            begun = number, intro
            number = max(intro.end, number + 1)
        if begun is not None:
            self._add_quote(*begun, number)

    def _add_quote(self, start: int, intro: _Intro, end: int) -> None:
        """Add a quote; a signature below it is not part of it."""
        lines = self._lines
        first = next((line for line in lines[intro.end : end] if line.text), None)
        if lines[start].depth or (first is not None and first.depth):
            for number in range(intro.end, end):
                if lines[number].text and not lines[number].depth:
                    self._has_answers_between = self._has_answers_between or lines[number].text != "--"
                    end = number
                    break
        self._quotes.append(_Quote(start, end, intro.author, "\n".join(line.text for line in lines[intro.end : end])))

    def _is_forward(self, number: int) -> bool:
        """Return whether a forwarded mail begins in this line: its mail program says so, with its header below."""
        text = self._lines[number].text
        if len(text) >= MAX_INTRO_CHARS:
            return False
        if text.endswith(_COLONS) and text.casefold().startswith(_FORWARD_LINES):
            return True
        if _FRAMED.fullmatch(text) is None or _is_separator(text):
            return False
        return any(_find_field(line.text) for line in self._lines[number + 1 : number + 4])

    def _find_intro(self, number: int) -> _Intro | None:
        """Return the intro of a quote, if it begins in this line."""
        line = self._lines[number]
        if _is_separator(line.text):
            following = number + 1
            while following < len(self._lines) and following < number + 3 and not self._lines[following].text:
                following += 1
            below = self._find_intro_of_author(following) if following < len(self._lines) else None
            return below or _Intro(number + 1, "")
        if _RULE.fullmatch(line.text) and number + 1 < len(self._lines):
            return self._find_header(number + 1)  # Outlook draws a line above it
        return self._find_intro_of_author(number)

    def _find_intro_of_author(self, number: int) -> _Intro | None:
        return self._find_header(number) or self._find_attribution(number)

    def _find_header(self, number: int) -> _Intro | None:
        """Find a block such as From, Sent, To, Subject."""
        first = self._lines[number]
        if _find_field(first.text) is None:
            return None
        kinds: dict[str, str] = {}
        end = number
        for line in self._lines[number : number + MAX_HEADER_LINES]:
            if not line.text or line.depth != first.depth:
                break
            kind = _find_field(line.text)
            if kind is None and len(kinds) >= MIN_HEADER_FIELDS and "subject" in kinds:
                break  # the text begins without an empty line
            if kind is not None:
                kinds.setdefault(kind, line.text)
            end += 1
        if len(kinds) < MIN_HEADER_FIELDS or not kinds.keys() >= {"from"}:
            return None
        return _Intro(end, kinds["from"][:MAX_INTRO_CHARS].casefold())

    def _find_attribution(self, number: int) -> _Intro | None:
        """Find a line such as "On 16 Nov 2026, Ada wrote:", also one that is broken into several."""
        depth = self._lines[number].depth
        lines = self._lines[number : number + MAX_INTRO_LINES]
        last = next((at for at, line in enumerate(lines) if line.text.endswith(_COLONS)), None)
        if last is None or not all(line.text and line.depth == depth for line in lines[: last + 1]):
            return None
        words = [line.text for line in lines[: last + 1]]
        first = next((at for at in range(last, -1, -1) if _is_attribution(" ".join(words[at:]))), None)
        while first and words[first - 1].casefold().startswith(_FIRST_WORDS):
            first -= 1  # the date is broken, too
        if first != 0:
            return None  # a line of the person stands right above it, or it is none
        return _Intro(number + last + 1, " ".join(words).casefold())


class _KnownTexts:
    """What a conversation has, by the letters of each piece."""

    def __init__(self, known: Iterable[KnownText], agent_names: Sequence[str]) -> None:
        self._authors: dict[str, set[str]] = {}
        self._urls: set[str] = set()
        for text, authors in known:
            names = [name.casefold() for name in authors or agent_names if len(name) >= MIN_NAME_CHARS]
            self._urls.update(_list_urls(text))
            self._add(text, names)
            for intro, piece in MailText(text).list_pieces():
                self._add(piece, (_ADDRESS.findall(intro) or [intro]) if intro else names)

    def _add(self, text: str, names: Iterable[str]) -> None:
        for variant in (text, cut_signature(text)):
            if letters := _keep_letters(variant):
                self._authors.setdefault(letters, set()).update(names)

    def has(self, quote: _Quote) -> bool:
        variants = (_keep_letters(quote.text), _keep_letters(cut_signature(quote.text)))
        if not any(self._is_by_author(letters, quote.intro) for letters in variants):
            return False
        return all(url in self._urls for url in _list_urls(quote.text))

    def _is_by_author(self, letters: str, intro: str) -> bool:
        names = self._authors.get(letters)
        if names is None:
            return False
        if "@" in intro:
            return any("@" in name and name in intro for name in names)
        return len(letters) >= MIN_ANONYMOUS_CHARS or any(name in intro for name in names)


def _read_line(line: str) -> _Line:
    match = _MARKS.match(line)
    if match is None:
        return _Line(0, line.strip())
    return _Line(match[0].count(">"), line[match.end() :].strip())


def _find_field(text: str) -> str | None:
    """Return what a line such as "From: Ada" of the header of a mail says: `from`, `date` …"""
    head = text[:40].replace("\uff1a", ":")
    name, colon, _ = head.partition(":")
    return _FIELDS.get("_".join(name.replace("*", " ").split()).casefold()) if colon else None


def _is_attribution(text: str) -> bool:
    if len(text) > MAX_INTRO_CHARS or not _TIME.search(text):
        return False
    return _ADDRESS.search(text) is not None or _WROTE.search(text.casefold()) is not None


def _is_separator(text: str) -> bool:
    framed = _FRAMED.fullmatch(text) if len(text) < MAX_INTRO_CHARS else None
    return framed is not None and framed[1].casefold() in _REPLY_WORDS


def cut_signature(text: str) -> str:
    """Return a text without the signature, which many mail programs do not quote."""
    before, mark, _ = f"\n{text}".replace("\n-- \n", "\n--\n").rpartition("\n--\n")
    return before.strip() if mark else text


def _keep_letters(text: str) -> str:
    text = _SMALL_BULLET.sub("", _FENCE.sub("", _URL.sub("", text)))
    return "".join(filter(str.isalnum, text.casefold()))


def _list_urls(text: str) -> Iterator[str]:
    """Yield the addresses of links in a text; those that Outlook leads through its own server as they were."""
    for url in _URL.findall(text):
        rewritten = _REWRITTEN_URL.search(url)
        clean = unquote(rewritten[1]) if rewritten else url
        if not clean.lower().startswith("mailto:"):
            yield clean.lower().rstrip(".,;:!?*_/")[:MAX_INTRO_CHARS]
