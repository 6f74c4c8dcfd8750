"""A hub for one repository on the loopback: what huggingface_hub asks of one to bring a snapshot here, and which files were taken from it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c" * 40


@contextmanager
def serving(name: str, folder: Path) -> Iterator[tuple[str, set[str]]]:
    """(address, files that were taken so far). The repository's only commit is COMMIT, its branch main."""
    files = {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}
    taken: set[str] = set()

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            path = self.path.partition("?")[0]
            if path == f"/api/models/{name}/revision/main":
                body, more = json.dumps({"id": name, "modelId": name, "sha": COMMIT, "siblings": []}).encode(), {}
            elif path == f"/api/models/{name}/tree/{COMMIT}":
                tree = [{"type": "file", "path": p, "size": len(b), "oid": etag(b)} for p, b in files.items()]
                body, more = json.dumps(tree).encode(), {}
            elif path.startswith(f"/{name}/resolve/{COMMIT}/"):
                file = path.removeprefix(f"/{name}/resolve/{COMMIT}/")
                body, more = files[file], {"ETag": f'"{etag(files[file])}"', "X-Repo-Commit": COMMIT}
                taken.add(file)
            else:
                body, more = b"{}", {"X-Error-Code": "RepoNotFound"}
            self.send_response(404 if "X-Error-Code" in more else 200)
            for header, value in {"Content-Length": str(len(body)), **more}.items():
                self.send_header(header, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
    finally:
        server.shutdown()
        server.server_close()


def etag(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
