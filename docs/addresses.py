"""Writes public addresses into the README and `pyproject.toml` for an upload to a package index.

An index shows the README alone, so its relative links and images would be broken. ``docs/releasing.md`` says when to
run this::

    python docs/addresses.py https://host.example/owner/llpbench https://docs.example/llpbench
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def absolute_links(readme: str, repository: str, tag: str) -> str:
    """The README with absolute links and images."""
    images = re.sub(r"(!\[[^\]]*\])\(([^):]+)\)", rf"\1({repository}/raw/{tag}/\2)", readme)
    return re.sub(r"\]\(([A-Za-z.][^):]*)\)", rf"]({repository}/blob/{tag}/\1)", images)


def with_addresses(pyproject: str, repository: str, tag: str, documentation: str) -> str:
    """`pyproject.toml` with the addresses of the project."""
    urls = {
        "Homepage": documentation,
        "Documentation": documentation,
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
    }
    lines = "".join(f'{name} = "{address}"\n' for name, address in urls.items())
    done, times = re.subn(r"^\[project\.urls\]\n", rf"\g<0>{lines}", pyproject, flags=re.MULTILINE)
    if times != 1 or re.search(r"^Repository = .*\n(.*\n)*Repository = ", done, flags=re.MULTILINE):
        raise SystemExit("pyproject.toml already has addresses or lacks [project.urls]. Restore it with git first.")
    return done


def main() -> None:
    """Edit both files in place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", help="address of the repository, without a slash at its end")
    parser.add_argument("documentation", nargs="?", help="address of the site (default: docs/ of the repository)")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the two files")
    given = parser.parse_args()
    repository = given.repository.rstrip("/")
    readme, pyproject = given.root / "README.md", given.root / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8")
    tag = f"v{tomllib.loads(text)['project']['version']}"
    documentation = given.documentation or f"{repository}/tree/{tag}/docs"
    pyproject.write_text(with_addresses(text, repository, tag, documentation), encoding="utf-8")
    readme.write_text(absolute_links(readme.read_text(encoding="utf-8"), repository, tag), encoding="utf-8")


if __name__ == "__main__":
    main()
