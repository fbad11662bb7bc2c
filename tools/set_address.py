"""Sets the address of the repository, once it has one: in the metadata, the README and CITATION.cff.

    python -m tools.set_address https://example.org/owner/wengert

`[project.urls]` in pyproject.toml is the one place: the documentation reads it there, and a test holds the other files
to it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

__all__ = ["FILES", "address_of", "main", "with_address"]

ROOT = Path(__file__).resolve().parent.parent
URLS = '[project.urls]\nRepository = "{0}"\nIssues = "{0}/issues"\nChangelog = "{0}/blob/main/CHANGELOG.md"\n\n'
CITED = 'repository-code: "{0}"\n'
CLONED = "Clone [this repository]({0})"
OTHERWISE = "Clone this repository"
BEFORE = {"pyproject.toml": "[project.scripts]\n", "course/pyproject.toml": "[project.optional-dependencies]\n"}
FILES = (*BEFORE, "CITATION.cff", "README.md")


def address_of(folder: Path = ROOT) -> str:
    """Return the address of the repository; an empty string while it has none."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project.get("urls", {}).get("Repository", ""))


def with_address(name: str, text: str, address: str) -> str:
    """Return the text of one of the files with this address; with an empty one as it was without."""
    if name in BEFORE:
        text = re.sub(r"^\[project\.urls\]\n(.+\n)+\n", "", text, flags=re.MULTILINE)
        return text.replace(BEFORE[name], URLS.format(address) + BEFORE[name], 1) if address else text
    if name == "CITATION.cff":
        text = re.sub(r"^repository-code: .*\n", "", text, flags=re.MULTILINE)
        return text.replace("license:", CITED.format(address) + "license:", 1) if address else text
    text = re.sub(r"Clone \[this repository\]\(.*?\)", OTHERWISE, text)
    return text.replace(OTHERWISE, CLONED.format(address), 1) if address else text


def main(argv: list[str] | None = None, folder: Path = ROOT) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", help="such as https://example.org/owner/wengert")
    address = parser.parse_args(argv).address.rstrip("/").removesuffix(".git")
    if not re.fullmatch(r"https://[\w.-]+(/[\w.~-]+)+", address):
        parser.error(f"{address} is no address of a repository: expected https://host/owner/name")
    for name in FILES:
        path = folder / name
        path.write_text(with_address(name, path.read_text(encoding="utf-8"), address), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
