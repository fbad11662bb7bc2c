"""What all tests share: the engine that is named, the groups that need a library, the table as it was, a browser."""

from __future__ import annotations

import builtins
import functools
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from wengert import Value, _loader, functions, ops, steps

NEEDS = {
    "torch": "torch",
    "jax": "jax",
    "sklearn": "sklearn",
    "mpmath": "mpmath",
    "plot": "matplotlib",
    "png": "resvg_py",
    "browser": "selenium",
}
"""Marker -> library. What the markers mean stands in pyproject.toml."""

HERE = Path(__file__).parent
OPTIONAL = ("checkpoint", "compiler", "diagnosis", "docs", "programs", "training", "view")
"""What stands on the core; in those folders the following files run what only recording asks for."""
OF_THE_CORE = ("test_calls.py", "test_captures.py")

pytest.register_assert_rewrite("tests.compiler.checks", "tests.compiler.models")  # their assertions show numbers

if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
    settings.load_profile("tests")


@pytest.fixture(autouse=True)
def runners_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that a test finds are those of the test runner, which call nothing: a test is alone beside them."""
    if not find_spec("numpy"):
        return
    from wengert.compiler.reach import randomness

    before = {*sys._current_frames()} - {threading.get_ident()}
    monkeypatch.setattr(randomness, "others", lambda: {*sys._current_frames()} - before - {threading.get_ident()})


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """After each test, whatever it raised: the operations that it has registered, or disturbed, are forgotten, and of a
    recording nothing stays: neither what replaces functions of Python's own, nor what is no plain number.
    """
    rows, names, methods = list(ops.TABLE), dict(ops.BY_NAME), set(vars(functions.Functions))
    replaced, cache = (builtins.max, builtins.min), os.environ["WENGERT_CACHE"]
    yield
    os.environ["WENGERT_CACHE"] = cache
    ops.TABLE[:] = rows
    del ops.UNARY[len(rows) :]
    ops.BY_NAME.clear()
    ops.BY_NAME.update(names)
    for name in set(vars(functions.Functions)) - methods:
        delattr(functions.Functions, name)
    assert (builtins.max, builtins.min) == replaced
    assert type(Value(1.0).data) is float


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a session's machine code, which its processes share; one that is named, which other sessions do."""
    if named := os.environ.get("WENGERT_TESTS_CACHE"):
        return Path(named)
    own = tmp_path_factory.getbasetemp()
    return (own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own) / "machine-code"


@pytest.fixture(scope="session", autouse=True)
def session(machine_code: Path) -> Iterator[None]:
    """A program that several tests compile is compiled once; the user's own cache is left alone. And a process that a
    test starts, and waits for, is ended when it takes far too long; it does not compile each module anew.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WENGERT_CACHE", str(machine_code))
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setattr(subprocess, "run", functools.partial(subprocess.run, timeout=600))
        yield


@pytest.fixture
def sigint() -> Iterator[None]:
    """Python's own handler of SIGINT, here and in what is started here: it is ignored in a suite that runs in the
    background or under `nohup`.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_configure(config: pytest.Config) -> None:
    """Optimizing its machine code takes XLA most of the time of a test: it does so at night, and as users ask it to."""
    if "nightly" not in config.option.markexpr:
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")


def pytest_report_header() -> str:
    return f"wengert: {_loader.status()}"


def left_to_the_night(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is `sampled(n)`, mark all but one of each n in a row `nightly`.

    Which one, is drawn, so that none of what they combine is left out; what is drawn is the same each time.
    """
    cases: defaultdict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("nightly"):
            cases[item.path, getattr(item, "originalname", item.name)].append(item)
    for (_, name), those in cases.items():
        n = those[0].get_closest_marker("sampled").args[0]
        for first in range(0, len(those), n):
            row = those[first : first + n]
            del row[zlib.crc32(f"{name} {first}".encode()) % len(row)]
            for item in row:
                item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_to_the_night(items)
    if "nightly" not in config.option.markexpr:  # else it says which
        left = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if any(isinstance(one, str) and one == "xla" for one in parameters):  # the back end of that name
            item.add_marker("jax")
    for marker, library in NEEDS.items():
        if find_spec(library) is None:
            skip = pytest.mark.skip(reason=f"needs {library}")
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(skip)
    for item in items:
        if item.path.relative_to(HERE).parts[0] in OPTIONAL and item.path.name not in OF_THE_CORE:
            item.add_marker(pytest.mark.optional)


def pytest_collection_finish() -> None:
    """What has been imported stays: the collector, which many tests call, need not visit PyTorch and JAX each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium, headless, one process for all tests; it reports every request that it makes."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.add_argument("--window-size=1280,860")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    chrome.set_script_timeout(180.0)  # axe on the longest page, on a machine that does other things too
    yield chrome
    chrome.quit()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser, of which the test's pages complained of nothing and asked for nothing but themselves."""
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield chromium
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    asked = requests(chromium)
    assert [url for url in asked if not url.startswith(("file:///", "data:", "about:"))] == []
    assert len([url for url in asked if url.startswith("file:///")]) <= 12  # the pages themselves


def requests(browser: Any) -> list[str]:
    """What the browser has asked for since it was last looked at, and was not refused by the page's policy."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    refused = {
        m["params"]["requestId"]
        for m in messages
        if m["method"] == "Network.loadingFailed" and m["params"].get("blockedReason") == "csp"
    }
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in sent if request["requestId"] not in refused]


def unpacked(browser: Any) -> None:
    """Wait until the page of steps in the browser runs its program."""
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return typeof go === 'function' && !!document.querySelector('#count').textContent"
    WebDriverWait(browser, 20, 0.02).until(lambda page: page.execute_script(script))


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Callable[..., Any]:
    """Write the page of a result to a file and open that, at a position, or at one and a leaf: "7,w1"."""

    def show(root: Value, position: int | str = 0) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        steps(root).save(path)
        browser.get(f"{path.as_uri()}#{position}")
        unpacked(browser)
        return browser

    return show
