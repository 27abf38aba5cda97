"""QR codes, as rows of dark and light squares. Terminal and page draw them."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=8)  # an account shows the same one until it expires
def make_qr_code(text: str) -> tuple[str, ...]:
    """Return the QR code of a text: a row of `1` (dark) and `0` (light) for each line, without a margin.

    It is empty if the text is too long for a QR code.
    """
    import segno

    try:
        code = segno.make_qr(text, error="l", boost_error=False)  # it is shown on a screen: the smaller, the better
    except segno.DataOverflowError:
        return ()
    return tuple("".join("1" if square else "0" for square in row) for row in code.matrix)
