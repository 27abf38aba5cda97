"""Text out of documents, in a child process: what comes out, and that hostile documents end only their own process."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import pytest

from palaver.media.documents.extraction import DOCUMENT_TYPES, DocumentText, TextExtractor, find_archive_type
from palaver.media.documents.limits import EPUB_TYPE, EXCEL_TYPE, MAX_TEXT_CHARS, PDF_TYPE, POWERPOINT_TYPE, WORD_TYPE
from support.documents import make_epub, make_excel, make_open_document, make_pdf, make_powerpoint, make_word, make_zip

pytestmark = pytest.mark.slow  # starts real child processes

ODT, ODS, ODP = (f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation"))
WORD_BODY = (
    '<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Offer</w:t></w:r></w:p>'
    "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>one</w:t></w:r><w:r><w:tab/><w:t>two</w:t></w:r></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr>"
    "</w:tbl><w:p><w:r><w:instrText>HYPERLINK</w:instrText><w:t>end</w:t></w:r></w:p>"
)
ODT_BODY = (
    '<text:h text:outline-level="1">Offer</text:h><text:p>one<text:tab/>two</text:p>'
    "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
    "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
    "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table>"
)
ODP_BODY = (
    '<draw:page draw:name="page2"><text:p>b</text:p></draw:page>'
    '<draw:page draw:name="page1"><text:p>a</text:p></draw:page>'
)
ODS_BODY = (
    '<table:table table:name="Prices"><table:table-row>'
    '<table:table-cell office:value-type="string"><text:p>tea</text:p>'
    '</table:table-cell><table:table-cell office:value-type="float" office:value="4.5"><text:p>4.5</text:p>'
    "</table:table-cell></table:table-row></table:table>"
)


async def read(data: bytes, media_type: str, **options: float) -> DocumentText:
    return await TextExtractor(**options).read(data, media_type, person="ada")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "media_type", "expected"),
    [
        (make_pdf("First page", "Second page"), PDF_TYPE, "[page 1]\nFirst page\n\n[page 2]\nSecond page"),
        (make_word(WORD_BODY), WORD_TYPE, "## Offer\n- one\ttwo\na | b\nend"),
        (make_excel(), EXCEL_TYPE, "## Prices\ntea | 4.5"),
        (make_powerpoint("b", "c", "a"), POWERPOINT_TYPE, "## Slide 1\nb\n\n## Slide 2\nc\n\n## Slide 3\na"),
        (make_open_document("text", ODT_BODY), ODT, "# Offer\none\ttwo\n- item\na | b"),
        (make_open_document("spreadsheet", ODS_BODY), ODS, "## Prices\ntea | 4.5"),
        (make_open_document("presentation", ODP_BODY), ODP, "## Slide 1\nb\n\n## Slide 2\na"),
        (make_epub("<h1>One</h1><p>text", "<p>two"), EPUB_TYPE, "# One\n\ntext\n\ntwo"),
    ],
)
async def test_the_text_of_each_kind(data: bytes, media_type: str, expected: str) -> None:
    if media_type != PDF_TYPE:
        assert find_archive_type(data) == media_type
    assert media_type in DOCUMENT_TYPES
    assert await read(data, media_type) == DocumentText(text=expected)


async def test_the_notes_of_a_speaker_stand_after_their_slide() -> None:
    data = (Path(__file__).parent / "files" / "notes.pptx").read_bytes()  # its parts are as a program has written them
    assert find_archive_type(data) == POWERPOINT_TYPE
    assert (await read(data, POWERPOINT_TYPE)).text == (
        "## Slide 1\nHarvest\nPlums first\n\nNotes:\nSay thank you to Ada.\nThen show the basket.\n\n"
        "## Slide 2\nWinter\nJam\n\n## Slide 3\nSpring"
    )


async def test_long_notes_are_cut_like_other_texts() -> None:
    data = make_powerpoint("b", "c", notes="word " * MAX_TEXT_CHARS)
    found = await read(data, POWERPOINT_TYPE)
    assert found.text.startswith("## Slide 1\nb\n\nNotes:\nword word")
    assert found.is_cut
    assert len(found.text) <= MAX_TEXT_CHARS


@pytest.mark.parametrize(
    "data", [make_zip({"a.txt": "x"}), b"PK\x03\x04", make_word()[:-30], b"", b"PK\x03\x04" * 9999]
)
def test_other_archives_are_no_documents(data: bytes) -> None:
    assert find_archive_type(data) is None


def test_an_archive_with_a_huge_list_of_files_is_no_document() -> None:
    names = {f"{number:07}" + "x" * 200: "" for number in range(9000)}
    assert find_archive_type(make_zip({"word/document.xml": "<a/>", **names})) is None


@pytest.mark.parametrize("media_type", sorted(DOCUMENT_TYPES))
@pytest.mark.parametrize("damage", ["cut", "changed", "other"])
async def test_damaged_documents_say_so(media_type: str, damage: str) -> None:
    makers = {
        PDF_TYPE: make_pdf("x"),
        WORD_TYPE: make_word(WORD_BODY),
        EXCEL_TYPE: make_excel(),
        POWERPOINT_TYPE: make_powerpoint("x"),
        EPUB_TYPE: make_epub("<p>x"),
    }
    data = makers.get(media_type) or make_open_document("text", ODT_BODY)
    middle = len(data) // 2
    changed = data[:60] + bytes(middle - 60) + data[middle:]
    damaged = {"cut": data[: len(data) // 3], "changed": changed, "other": b"hello"}[damage]
    assert await read(damaged, media_type) == DocumentText(problem="it is damaged")


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
FAR_CELLS = ('<row r="1"><c r="A1"><v>1</v></c></row>', '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')


@pytest.mark.parametrize(
    ("data", "media_type", "problem"),
    [
        (make_word("<w:p><w:r><w:t>&c;</w:t></w:r></w:p>", LAUGHS), WORD_TYPE, "document type"),
        (make_word("<w:p>" * 5000 + "</w:p>" * 5000), WORD_TYPE, "nested too deeply"),
        (make_word("<w:p/>"), WORD_TYPE, "it contains no text"),
        (make_excel(FAR_CELLS), EXCEL_TYPE, "needs too much memory"),
        (make_pdf("", ""), PDF_TYPE, "scanned images"),
        (make_epub(), EPUB_TYPE, "no chapters"),
    ],
    ids=["entities", "deep", "empty", "far cells", "scanned", "no chapters"],
)
async def test_hostile_documents_say_why_they_are_not_read(data: bytes, media_type: str, problem: str) -> None:
    result = await read(data, media_type)
    assert result.problem is not None
    assert problem in result.problem
    assert result.is_lasting


async def test_an_archive_that_grows_too_much_is_not_unpacked() -> None:
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("word/document.xml", "w") as stream,
    ):
        stream.write(b"<w>")
        for _ in range(101):
            stream.write(b" " * 2_000_000)
    result = await read(buffer.getvalue(), WORD_TYPE)
    assert result.problem == "it is too large when unpacked"


async def test_of_a_large_document_only_the_beginning_is_read() -> None:
    rows = (
        f'<row r="{number}">'
        + "".join(f'<c r="{column}{number}"><v>{number}</v></c>' for column in "ABCDEFGHIJ")
        + "</row>"
        for number in range(1, 100_001)
    )
    for data, media_type in (
        (make_excel(rows), EXCEL_TYPE),
        (make_word("<w:p><w:r><w:t>word</w:t></w:r></w:p>" * 200_000), WORD_TYPE),
    ):
        result = await read(data, media_type)
        assert result.is_cut
        assert MAX_TEXT_CHARS * 0.9 < len(result.text) <= MAX_TEXT_CHARS


async def test_a_document_that_takes_too_long_ends_its_process() -> None:
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    result = await TextExtractor(command, max_seconds=0.2).read(b"x", PDF_TYPE, person="ada")
    assert (result.problem, result.is_lasting) == ("reading it took too long", False)


async def test_a_process_that_writes_too_much_or_nonsense_is_ended() -> None:
    for program in ("while True: print('x' * 9999)", "print('no json')", "import os; os.abort()"):
        result = await TextExtractor((sys.executable, "-c", program)).read(b"x", PDF_TYPE, person="ada")
        assert result.problem == "reading it needs too much memory, or it is damaged"


async def test_the_process_does_not_get_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    program = "import os; print('{}'); print(sorted(os.environ))"
    result = await TextExtractor((sys.executable, "-c", program)).read(b"x", PDF_TYPE, person="ada")
    assert "PATH" in result.text
    assert "OPENAI_API_KEY" not in result.text


async def test_without_the_extra_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("pypdfium2", "python_calamine"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name={name!r})")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for data, media_type in ((make_pdf("x"), PDF_TYPE), (make_excel(), EXCEL_TYPE)):
        result = await read(data, media_type)
        assert result.problem is not None
        assert "palaver[documents]" in result.problem
        assert not result.is_lasting
    assert (await read(make_word(), WORD_TYPE)).text == "Dear Ada"
