"""What the tests of the built documentation share: the site, and a browser that reads it from this machine alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import requests
from tests.docs.served import package, served

AXE = "4.11.0"


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder that sphinx-build wrote. It takes a minute to write, so whoever wants these tests does it first."""
    folder = os.environ.get("WENGERT_SITE")
    if not folder:
        pytest.skip("needs the documentation, built: sphinx-build docs SITE, and WENGERT_SITE=SITE in the environment")
    assert Path(folder, "index.html").is_file(), f"WENGERT_SITE={folder} holds no built site"
    return Path(folder)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: searching asks for pages, which a browser does not take from files."""
    with served(site) as where:
        yield where


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program that knows what stands in the way of those who cannot see or point."""
    return (package("axe-core", AXE, tmp_path_factory.mktemp("npm") / "axe") / "axe.min.js").read_text(encoding="utf-8")


def resize(browser: Any, width: int, height: int = 860) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_async_script(
        "requestAnimationFrame(() => setTimeout(arguments[0]))"
    )  # the page has laid itself out


def paint(browser: Any, theme: str) -> None:
    browser.execute_script("document.body.dataset.theme = arguments[0]", theme)


@pytest.fixture
def read(chromium: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open a page of the site, as wide and as light as asked for; it complains of nothing and asks nobody else."""
    for log in ("browser", "performance"):
        chromium.get_log(log)

    def opened(page: str, width: int = 1280, theme: str = "light") -> Any:
        resize(chromium, width)
        chromium.get(address + page)
        paint(chromium, theme)
        return chromium

    yield opened
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    assert [url for url in requests(chromium) if not url.startswith((address, "data:", "about:", "blob:"))] == []
