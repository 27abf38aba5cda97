"""Builds small documents of every kind that is read, byte by byte."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OFFICE = "http://schemas.openxmlformats.org"
_WORD_NAMESPACE = f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main"'
_ROW = '<row r="1"><c r="A1" t="inlineStr"><is><t>tea</t></is></c><c r="B1"><v>4.5</v></c></row>'
_RELATIONS = f"{_OFFICE}/officeDocument/2006/relationships"


def make_zip(files: Mapping[str, str | bytes], *, stored: str | None = None) -> bytes:
    """Build an archive; the file `stored` comes first and is not compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == stored else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def make_word(body: str = "<w:p><w:r><w:t>Dear Ada</w:t></w:r></w:p>", prolog: str = "") -> bytes:
    document = f"{prolog}<w:document {_WORD_NAMESPACE}><w:body>{body}</w:body></w:document>"
    return make_zip({"[Content_Types].xml": "<Types/>", "word/document.xml": document})


def make_excel(rows: Iterable[str] = (_ROW,)) -> bytes:
    main = f'xmlns="{_OFFICE}/spreadsheetml/2006/main"'
    package = f'xmlns="{_OFFICE}/package/2006/relationships"'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{_OFFICE}/package/2006/content-types"/>')
        archive.writestr(
            "_rels/.rels",
            f'<Relationships {package}><Relationship Id="r1" Type="{_RELATIONS}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {main} xmlns:r="{_RELATIONS}"><sheets><sheet name="Prices" sheetId="1" r:id="r1"/></sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships {package}><Relationship Id="r1" Type="{_RELATIONS}/worksheet"'
            ' Target="worksheets/sheet1.xml"/></Relationships>',
        )
        with archive.open("xl/worksheets/sheet1.xml", "w") as sheet:
            sheet.write(f"<worksheet {main}><sheetData>".encode())
            for row in rows:
                sheet.write(row.encode())
            sheet.write(b"</sheetData></worksheet>")
    return buffer.getvalue()


def make_powerpoint(*slides: str, notes: str = "") -> bytes:
    """Build a presentation whose slides were moved: their files have numbers in the opposite order.

    The first slide has the notes.
    """
    last = len(slides)
    order = "".join(f'<p:sldId id="{256 + number}" r:id="rId{number}"/>' for number in range(last))
    parts = "".join(
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/slide" Target="slides/slide{last - number}.xml"/>'
        for number in reversed(range(last))
    )
    files = {
        "ppt/presentation.xml": f'<p:a xmlns:p="p" xmlns:r="r"><p:sldIdLst>{order}</p:sldIdLst></p:a>',
        "ppt/_rels/presentation.xml.rels": f"<Relationships>{parts}</Relationships>",
        "ppt/slides/slide99.xml": '<p:sld xmlns:p="p" xmlns:a="a"><a:p><a:r><a:t>deleted</a:t></a:r></a:p></p:sld>',
    }
    for number, text in enumerate(slides):
        paragraph = f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"
        files[f"ppt/slides/slide{last - number}.xml"] = f'<p:sld xmlns:p="p" xmlns:a="a">{paragraph}</p:sld>'
    if notes:
        note = f"<a:p><a:r><a:t>{notes}</a:t></a:r></a:p>"
        files["ppt/notesSlides/notesSlide1.xml"] = f'<p:notes xmlns:p="p" xmlns:a="a"><p:sp>{note}</p:sp></p:notes>'
        files[f"ppt/slides/_rels/slide{last}.xml.rels"] = (
            f'<Relationships><Relationship Id="rId1" Type="{_RELATIONS}/notesSlide"'
            ' Target="../notesSlides/notesSlide1.xml"/></Relationships>'
        )
    return make_zip(files)


def make_open_document(kind: str, body: str) -> bytes:
    namespaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "draw")
    )
    content = (
        f"<office:document-content {namespaces}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
        "</office:document-content>"
    )
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media_type}"/></manifest:manifest>'
    )
    files = {"mimetype": media_type, "content.xml": content, "META-INF/manifest.xml": manifest}
    return make_zip(files, stored="mimetype")


def make_epub(*chapters: str) -> bytes:
    items = "".join(f'<item id="c{number}" href="c%20{number}.xhtml"/>' for number in range(len(chapters)))
    order = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    files = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/p.opf"/></rootfiles></container>',
        "OPS/p.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
    }
    files |= {f"OPS/c {number}.xhtml": chapter for number, chapter in enumerate(chapters)}
    return make_zip(files, stored="mimetype")


def make_pdf(*pages: str) -> bytes:
    """Build a PDF with one line on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 200] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    data = b"%PDF-1.4\n"
    offsets = []
    for number, each in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{each}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF"
    return data + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()
