"""The page: the built front end, served from the package.

It is one page with its own addresses, so every path that is not the API's gives the same document. What a build has
named by its content never changes and is kept by browsers for ever; everything else is asked for again. Text goes out
packed to browsers that can unpack it; each file is packed once.
"""

from __future__ import annotations

import gzip
from functools import cache
from mimetypes import guess_type
from typing import TYPE_CHECKING, Final

from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI, Request

HASHED: Final = "assets/"  # where the build puts what it names by its content
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_NOT_THE_PAGE = ("api/", "v1/")
_PACKED = frozenset({".css", ".html", ".js", ".json", ".svg", ".webmanifest"})


def install_page(app: FastAPI, folder: Path) -> None:
    """Serve the page, if there is one."""
    document = folder / "index.html"
    if not document.is_file():
        return
    known = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    @cache
    def packed(file: Path) -> bytes:
        return gzip.compress(file.read_bytes(), mtime=0)

    def served(file: Path, caching: str, request: Request) -> Response:
        headers = {"Cache-Control": caching}
        if file.suffix not in _PACKED:
            return FileResponse(file, headers=headers)
        headers["Vary"] = "Accept-Encoding"
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return FileResponse(file, headers=headers)
        media_type = guess_type(file.name)[0] or "application/manifest+json"
        return Response(packed(file), media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})

    async def page(request: Request) -> Response:
        path: str = request.path_params["path"]
        file = known.get(path)
        if file is not None:
            return served(file, _FOR_EVER if path.startswith(HASHED) else _ASK_AGAIN, request)
        if f"{path}/".startswith((*_NOT_THE_PAGE, HASHED)):
            raise HTTPException(404, "there is nothing here")
        return served(document, _ASK_AGAIN, request)

    app.add_route("/{path:path}", page, methods=["GET"], include_in_schema=False)
