"""A page of the documentation as its readers get it: served on the loopback, with files of npm's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

OFFLINE = ("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH")


def package(name: str, version: str, folder: Path) -> Path:
    """The folder of an npm package, of exactly this version; the test is skipped where the registry is not reached."""
    if not shutil.which("npm"):
        pytest.skip("needs npm: apt-get install npm")
    folder.mkdir(parents=True)
    command = ["npm", "pack", "--silent", f"{name}@{version}"]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, shell=os.name == "nt")
    if packed.returncode and any(word in packed.stderr for word in OFFLINE):
        pytest.skip(f"needs the npm registry: {packed.stderr.strip()[:200]}")
    assert packed.returncode == 0, packed.stderr
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


class Quiet(SimpleHTTPRequestHandler):
    """A server's answers, with the types that a browser insists on, and no log."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, *given: Any, runtime: Path | None, **more: Any) -> None:
        self.runtime: Path | None = runtime
        super().__init__(*given, **more)

    def translate_path(self, path: str) -> str:
        if self.runtime and path.startswith("/runtime/"):
            return str(self.runtime / path.removeprefix("/runtime/").partition("?")[0])
        return super().translate_path(path)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path, runtime: Path | None = None) -> Iterator[str]:
    """The address of a folder on the loopback, for as long as it is served; its `runtime/` may be another folder."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder), runtime=runtime))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
