"""What people have written: parts are chosen and decoded, and every size is bounded."""

from __future__ import annotations

import base64

import pytest

from palaver.platforms.email.body_text import (
    MAX_TEXT_CHARS,
    TransferDecoder,
    choose_parts,
    cut_text,
    decode_text,
    decode_transfer,
)
from palaver.platforms.email.imap_parsing import (
    MAX_PARTS,
    MimeGroup,
    MimePart,
    ResponseUnreadable,
    read_fetch_data,
    read_structure,
    tokenize,
)

# ---- decoding ---------------------------------------------------------------------------------------------


def make_part(**fields: object) -> MimePart:
    return MimePart(**{"section": "1", "media_type": "text/plain", "size": 100, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("utf-8", "Grüße".encode(), "Grüße"),
        ("iso-8859-1", "Grüße".encode("latin-1"), "Grüße"),
        ("us-ascii", "Grüße".encode("cp1252"), "Grüße"),  # a lie, as old programs tell it
        ("windows-1252", "“x”".encode("cp1252"), "“x”"),
        ("iso-2022-jp", "日本".encode("iso-2022-jp"), "日本"),
        ("no-such-charset", "Grüße".encode(), "Grüße"),
        ("zlib", b"abc", "abc"),
        ("punycode", b"abc-" * 50_000, "abc-" * 50_000),  # it would take minutes
        ("", "Grüß".encode()[:-1], "Grü"),  # cut in the middle of a letter
    ],
)
def test_charsets_are_decoded(charset: str, data: bytes, text: str) -> None:
    assert decode_text(make_part(charset=charset), data) == text


def test_broken_encodings_are_decoded_as_far_as_possible() -> None:
    assert decode_transfer("base64", b"SGVsbG8") == b"Hello"
    assert decode_transfer("base64", b"SGVsb!!\r\nG8=") == b"Hello"
    assert decode_transfer("base64", b"S") == b""
    assert decode_transfer("quoted-printable", b"a=3Db=\r\nc=ZZ") == b"a=bc=ZZ"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 77, 1000])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable", "7bit"])
def test_a_file_that_comes_in_chunks_is_whole(encoding: str, size: int) -> None:
    data = bytes(range(32, 127)) * 5
    if encoding == "base64":
        encoded = base64.encodebytes(data)
    else:
        encoded = data.replace(b"=", b"=3D") if encoding == "quoted-printable" else data
    decoder = TransferDecoder(encoding)
    chunks = [decoder.decode(encoded[start : start + size]) for start in range(0, len(encoded), size)]
    assert b"".join([*chunks, decoder.finish()]) == data


def test_a_text_that_is_too_long_is_cut_and_says_so() -> None:
    cut = cut_text("x" * (MAX_TEXT_CHARS + 1))
    assert len(cut) < MAX_TEXT_CHARS + 100
    assert cut.endswith("left out.]")


# ---- parts ------------------------------------------------------------------------------------------------


def parse(text: bytes) -> MimePart | MimeGroup:
    data = read_fetch_data(tokenize([b"1 FETCH (UID 1 BODYSTRUCTURE " + text + b")"]))
    assert data is not None
    return read_structure(data["BODYSTRUCTURE"])


PLAIN = b'("text" "plain" ("charset" "utf-8") NIL NIL "7bit" 10 1 NIL NIL NIL NIL)'
HTML = b'("TEXT" "HTML" NIL NIL NIL "QUOTED-PRINTABLE" 20 1)'
IMAGE = b'("image" "png" ("name" "a.png") "<i1>" NIL "base64" 400 NIL ("inline" ("filename" "a(1).png")) NIL)'
FILE = (
    b'("application" "pdf" NIL NIL NIL "base64" 4000 NIL ("attachment" ("filename*0*" "utf-8\'\'a" "filename*1" "b")))'
)


def test_the_plain_text_is_read_and_everything_else_is_a_file() -> None:
    structure = parse(b"((" + PLAIN + b"(" + HTML + IMAGE + b' "related") "alternative")' + FILE + b' "mixed")')
    parts = choose_parts(structure)
    assert [part.section for part in parts.texts] == ["1.1"]
    assert [(part.section, part.file_name) for part in parts.files] == [("1.2.2", "a(1).png"), ("2", "utf-8''ab")]


def test_a_mail_with_html_only_is_read_from_it() -> None:
    parts = choose_parts(parse(HTML))
    assert [(part.section, part.media_type, part.encoding) for part in parts.texts] == [
        ("1", "text/html", "quoted-printable")
    ]


def test_texts_between_files_are_all_read() -> None:
    parts = choose_parts(parse(b"(" + PLAIN + FILE + PLAIN + b' "mixed")'))
    assert [part.section for part in parts.texts] == ["1", "3"]


def test_an_attached_text_is_a_file() -> None:
    attached = b'("text" "plain" NIL NIL NIL "7bit" 10 1 NIL ("attachment" ("filename" "a.txt")))'
    parts = choose_parts(parse(b"(" + PLAIN + attached + b' "mixed")'))
    assert ([part.section for part in parts.texts], [part.section for part in parts.files]) == (["1"], ["2"])


def test_thousands_of_parts_are_bounded() -> None:
    parts = choose_parts(parse(b"(" + PLAIN + FILE * 2_000 + b' "mixed")'))
    assert len(parts.files) <= MAX_PARTS
    with pytest.raises(ResponseUnreadable):
        parse(b"(" + FILE * 10_000 + b' "mixed")')


@pytest.mark.parametrize("text", [b"(" * 100, b'("text', b"(a))", b"NIL", b'("a" "b"', b"(" * 70 + b")" * 70])
def test_a_damaged_structure_is_told(text: bytes) -> None:
    with pytest.raises(ResponseUnreadable):
        parse(text)


def test_literals_and_quotes_are_read() -> None:
    tokens = tokenize(
        [b"1 FETCH (BODY[HEADER.FIELDS (MESSAGE-ID)]<0> {5}", b"a)(\r\n", b' X "q\\"(" FLAGS (\\Seen) Y NIL)']
    )
    assert read_fetch_data(tokens) == {
        "BODY[HEADER.FIELDS (MESSAGE-ID)]": b"a)(\r\n",
        "X": b'q"(',
        "FLAGS": [b"\\Seen"],
        "Y": None,
    }


def test_a_reply_to_an_invitation_is_known_by_its_method() -> None:
    calendar = b'("text" "calendar" ("charset" "utf-8" "method" "REPLY") NIL NIL "7bit" 300 9)'
    assert choose_parts(parse(b"(" + PLAIN + calendar + b' "alternative")')).is_calendar_reply
    assert not choose_parts(
        parse(b"(" + PLAIN + calendar.replace(b"REPLY", b"REQUEST") + b' "alternative")')
    ).is_calendar_reply
