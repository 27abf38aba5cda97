"""The text of PDF documents, page by page."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

from palaver.media.documents.limits import DocumentUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PAGES: Final = 5000
_PASSWORD_ERROR: Final = 4  # FPDF_ERR_PASSWORD


def read_pdf(file: IO[bytes]) -> Iterator[str]:
    """Yield the text of the pages."""
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
