"""The page: serves the built frontend from the package.

The frontend is a single-page application, so every path outside the API returns the same document, which refers to
its files relative to its own address. The page itself says when it does not know an address. Browsers cache files with
a content hash in their name forever and revalidate all others. Text files are compressed with gzip, each once, for
browsers that support it. An upgrade or a build may replace the files while the server runs: then it serves the new
ones, and an old file that an open page asks for is not found.

`diagram.html`, the document that renders diagrams (decision 12), may be embedded in a frame of our own page. Its
content security policy is stricter: it runs its inline script and what the page passes to it, and cannot make
requests.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any, Final

from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from palaver.web.api_route import ApiRoute, RouteGroup

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from fastapi import FastAPI, Request


HASHED_FOLDER: Final = "assets/"  # the build puts files with a content hash in their name here
DIAGRAM_FILE: Final = "diagram.html"
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_API_PREFIXES = ("api/", "v1/", "hooks/")
_COMPRESSED_SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".svg", ".webmanifest"})
_FILE_PATH = re.compile(r"(?:[\w-][\w.-]{0,99}/){0,3}[\w-][\w.-]{0,199}", re.ASCII)  # of the files that a build makes
_MAX_COMPRESSED_FILES = 1000  # more than a build has
_REPLACED = "This file of the page was replaced. Reload the page."
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def install_page(app: FastAPI, folder: Path) -> None:
    """Serve the page, if the folder contains one."""
    document = folder / "index.html"
    if not document.is_file():
        return

    async def serve_page(request: Request) -> Response:
        path: str = request.path_params["path"]
        is_hashed = f"{path}/".startswith(HASHED_FOLDER)
        try:
            file = _find_file(folder, path)
            if file is not None:
                return await _serve_file(file, {"Cache-Control": _CACHE_FOREVER if is_hashed else _REVALIDATE}, request)
            if is_hashed or f"{path}/".startswith(_API_PREFIXES):
                raise HTTPException(404, "Not found.")
            depth = path.count("/")
            if depth:  # below the folder that the document expects to be in
                body = _read_text(document).replace('="./', f'="{"../" * depth}')
                return Response(body, media_type="text/html", headers={"Cache-Control": _REVALIDATE})
            return await _serve_file(document, {"Cache-Control": _REVALIDATE}, request)
        except FileNotFoundError as error:  # an upgrade or a build replaces the files right now
            raise HTTPException(404 if is_hashed else 503, _REPLACED) from error

    app.add_route("/{path:path}", serve_page, methods=["GET"], include_in_schema=False)


async def _serve_file(file: Path, headers: dict[str, str], request: Request) -> Response:
    info = _get_info(file)
    if file.name == DIAGRAM_FILE:
        headers = {**headers, **_load_diagram_headers(file, info.st_mtime_ns)}
    if file.suffix not in _COMPRESSED_SUFFIXES:
        return FileResponse(file, headers=headers, stat_result=info)
    headers = {**headers, "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return FileResponse(file, headers=headers, stat_result=info)
    media_type = guess_type(file.name)[0] or "application/manifest+json"
    # in a thread: compressing the largest file would block the event loop
    body = await asyncio.to_thread(_compress, file, info.st_mtime_ns)
    return Response(body, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})


def _get_info(file: Path) -> os.stat_result:
    return file.stat()


def _find_file(folder: Path, path: str) -> Path | None:
    """Find a file of the page. It is looked up on disk, because an upgrade or a build may have replaced the files."""
    if _FILE_PATH.fullmatch(path) is None:
        return None
    file = folder / path
    return file if file.is_file() else None


def _read_text(file: Path) -> str:
    return file.read_text("utf-8")


@lru_cache(maxsize=_MAX_COMPRESSED_FILES)
def _compress(file: Path, _changed_at: int) -> bytes:
    import gzip

    return gzip.compress(file.read_bytes(), mtime=0)


@lru_cache(maxsize=1)
def _load_diagram_headers(file: Path, _changed_at: int) -> dict[str, str]:
    return build_diagram_headers(file.read_bytes())


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


def install_openapi(app: FastAPI, base_path: str) -> None:
    """Serve the OpenAPI document. The first request generates it, in a thread: that describes every route.

    The schemas and texts of a route are defined with it.
    """
    lock = asyncio.Lock()
    body: bytes | None = None

    def generate_document() -> dict[str, Any]:
        groups = (group.routes for group in app.routes if isinstance(group, RouteGroup))
        routes = [each.describe() for each in chain.from_iterable(groups) if isinstance(each, ApiRoute)]
        servers = [{"url": base_path}] if base_path else None
        return _correct_schema(
            get_openapi(title=app.title, version=app.version, summary=app.summary, routes=routes, servers=servers)
        )

    async def serve_document(_request: Request) -> Response:
        nonlocal body
        async with lock:
            if body is None:
                body = await asyncio.to_thread(lambda: bytes(JSONResponse(app.openapi()).body))
        return Response(body, media_type="application/json")

    app.openapi = generate_document  # type: ignore[method-assign]
    app.add_route("/api/openapi.json", serve_document, name="openapi", include_in_schema=False)


def _correct_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Correct what FastAPI assumes: validation errors have our shape, and either way to sign in is enough."""
    schemas = schema["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for operations in schema["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["responses"]["413"] = operation["responses"]["400"] | {"description": "Content Too Large"}
            if operation.get("security"):  # alternatives, not requirements that all have to be met
                operation["security"] = [{name: []} for scheme in operation["security"] for name in scheme]
    return schema
