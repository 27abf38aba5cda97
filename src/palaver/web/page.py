"""The page: serves the built frontend from the package.

The frontend is a single-page application, so every path outside the API returns the same document, which refers to
its files relative to its own address. The page itself says when it does not know an address. Browsers cache files with
a content hash in their name forever and revalidate all others. Text files are compressed with gzip, each once, for
browsers that support it.

`diagram.html`, the document that renders diagrams (decision 12), may be embedded in a frame of our own page. Its
content security policy is stricter: it runs its inline script and what the page passes to it, and cannot make
requests.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi.responses import FileResponse, Response
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

HASHED_FOLDER: Final = "assets/"  # the build puts files with a content hash in their name here
DIAGRAM_FILE: Final = "diagram.html"
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_API_PREFIXES = ("api/", "v1/", "hooks/")
_COMPRESSED_SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".svg", ".webmanifest"})
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def install_page(app: FastAPI, folder: Path) -> None:
    """Serve the page, if the folder contains one."""
    document = folder / "index.html"
    if not document.is_file():
        return
    document_text = document.read_text("utf-8")
    paths = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    files = {file.relative_to(folder).as_posix(): file for file in paths}
    own_headers = {
        path: build_diagram_headers(file.read_bytes()) for path, file in files.items() if path == DIAGRAM_FILE
    }

    async def serve_file(file: Path, headers: dict[str, str], request: Request) -> Response:
        if file.suffix not in _COMPRESSED_SUFFIXES:
            return FileResponse(file, headers=headers)
        headers = {**headers, "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return FileResponse(file, headers=headers)
        media_type = guess_type(file.name)[0] or "application/manifest+json"
        body = await asyncio.to_thread(_compress, file)  # compressing the largest file would block the event loop
        return Response(body, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})

    async def serve_page(request: Request) -> Response:
        path: str = request.path_params["path"]
        file = files.get(path)
        if file is not None:
            caching = _CACHE_FOREVER if path.startswith(HASHED_FOLDER) else _REVALIDATE
            return await serve_file(file, {"Cache-Control": caching, **own_headers.get(path, {})}, request)
        if f"{path}/".startswith((*_API_PREFIXES, HASHED_FOLDER)):
            raise HTTPException(404, "Not found.")
        depth = path.count("/")
        if depth:  # below the folder that the document expects to be in
            body = document_text.replace('="./', f'="{"../" * depth}')
            return Response(body, media_type="text/html", headers={"Cache-Control": _REVALIDATE})
        return await serve_file(document, {"Cache-Control": _REVALIDATE}, request)

    app.add_route("/{path:path}", serve_page, methods=["GET"], include_in_schema=False)


@cache
def _compress(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), mtime=0)


def build_diagram_headers(document: bytes) -> dict[str, str]:
    """Build the headers of `diagram.html` that differ from those of other responses."""
    hashes = [b64encode(sha256(script).digest()).decode() for script in _INLINE_SCRIPT.findall(document)]
    policy = [
        "default-src 'none'",
        " ".join(["script-src blob:", *(f"'sha256-{each}'" for each in hashes)]),
        *("style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'"),
        "sandbox allow-scripts",
    ]
    return {"Content-Security-Policy": "; ".join(policy), "X-Frame-Options": "SAMEORIGIN"}
