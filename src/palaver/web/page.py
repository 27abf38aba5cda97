"""The page: the built front end, served from the package.

It is one page with its own addresses, so every path that is not the API's gives the same document. What a build has
named by its content never changes and is kept by browsers for ever; everything else is asked for again. Text goes out
packed to browsers that can unpack it; each file is packed once.

Beside it lies the document in which diagrams are drawn (decision 12). It may be shown in a frame of our own page, and
has a policy of its own: it runs the script that stands in it and what the page hands to it, and asks nobody for
anything.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from typing import TYPE_CHECKING, Final

from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI, Request

HASHED: Final = "assets/"  # where the build puts what it names by its content
DRAWING: Final = "diagram.html"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_NOT_THE_PAGE = ("api/", "v1/")
_PACKED = frozenset({".css", ".html", ".js", ".json", ".svg", ".webmanifest"})
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def install_page(app: FastAPI, folder: Path) -> None:
    """Serve the page, if there is one."""
    document = folder / "index.html"
    if not document.is_file():
        return
    known = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    special = {path: drawing_headers(file.read_bytes()) for path, file in known.items() if path == DRAWING}

    @cache
    def packed(file: Path) -> bytes:
        return gzip.compress(file.read_bytes(), mtime=0)

    async def served(file: Path, headers: dict[str, str], request: Request) -> Response:
        if file.suffix not in _PACKED:
            return FileResponse(file, headers=headers)
        headers = {**headers, "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return FileResponse(file, headers=headers)
        media_type = guess_type(file.name)[0] or "application/manifest+json"
        body = await asyncio.to_thread(packed, file)  # the largest takes long enough to be noticed
        return Response(body, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})

    async def page(request: Request) -> Response:
        path: str = request.path_params["path"]
        file = known.get(path)
        if file is not None:
            caching = _FOR_EVER if path.startswith(HASHED) else _ASK_AGAIN
            return await served(file, {"Cache-Control": caching, **special.get(path, {})}, request)
        if f"{path}/".startswith((*_NOT_THE_PAGE, HASHED)):
            raise HTTPException(404, "there is nothing here")
        return await served(document, {"Cache-Control": _ASK_AGAIN}, request)

    app.add_route("/{path:path}", page, methods=["GET"], include_in_schema=False)


def drawing_headers(document: bytes) -> dict[str, str]:
    """What differs in the headers of the document in which diagrams are drawn."""
    scripts = [b64encode(sha256(script).digest()).decode() for script in _SCRIPT.findall(document)]
    policy = [
        "default-src 'none'",
        " ".join(["script-src blob:", *(f"'sha256-{each}'" for each in scripts)]),
        *("style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'"),
        "sandbox allow-scripts",
    ]
    return {"Content-Security-Policy": "; ".join(policy), "X-Frame-Options": "SAMEORIGIN"}
