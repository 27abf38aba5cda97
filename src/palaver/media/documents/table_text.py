"""The text of spreadsheets (Excel and OpenDocument) and of PDF documents.

Each sheet comes with its name, and each row on a line; of a PDF, page by page.
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import IO, TYPE_CHECKING, Any, Final

from palaver.media.documents.limits import DocumentUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_SHEETS: Final = 100
MAX_EMPTY_ROWS: Final = 100_000  # that are skipped in one document
MAX_CELL_CHARS: Final = 10_000
MAX_PAGES: Final = 5000
_PASSWORD_ERROR: Final = 4  # FPDF_ERR_PASSWORD


def read_sheets(file: IO[bytes]) -> Iterator[str]:
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        workbook = CalamineWorkbook.from_filelike(file)
        empty_rows = 0
        for name in workbook.sheet_names[:MAX_SHEETS]:
            yield f"\n## {name[:200]}\n"
            for row in workbook.get_sheet_by_name(name).iter_rows():
                cells = [_format_cell(cell) for cell in row]
                while cells and not cells[-1]:
                    cells.pop()
                if cells:
                    yield f"{' | '.join(cells)}\n"
                else:
                    empty_rows += 1
                    if empty_rows > MAX_EMPTY_ROWS:
                        return
    except PasswordError:
        raise DocumentUnreadable("it is protected with a password") from None
    except (CalamineError, ValueError, OverflowError):
        raise DocumentUnreadable("it is damaged") from None


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes") if (value.hour, value.minute) != (0, 0) else value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    return " ".join(str(value)[:MAX_CELL_CHARS].split())


def read_pdf(file: IO[bytes]) -> Iterator[str]:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_ERROR:
            raise DocumentUnreadable("it is protected with a password") from None
        raise DocumentUnreadable("it is damaged") from None
    has_text = False
    for number in range(min(len(document), MAX_PAGES)):
        text = _read_page(document, number)
        has_text = has_text or bool(text)
        yield f"\n[page {number + 1}]\n{text}\n" if text else ""
    if not has_text:
        raise DocumentUnreadable("it contains no text; its pages may be scanned images")


def _read_page(document: Any, number: int) -> str:
    import pypdfium2

    try:
        page = document[number]
        text_page = page.get_textpage()
        text = str(text_page.get_text_bounded())
        text_page.close()
        page.close()
    except pypdfium2.PdfiumError:
        return "(this page can't be read)"
    return text.replace("\r\n", "\n").replace("\ufffe", "-\n").strip()
