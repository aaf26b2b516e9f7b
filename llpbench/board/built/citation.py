"""BibTeX entries for llpbench, its suites and its paper. A test compares them with ``CITATION.cff``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llpbench.experiment.suites.file import Suite

_WHAT = "a benchmark suite for learning from label proportions"
TITLE = f"llpbench: {_WHAT}"
DEVELOPERS = "The llpbench developers"
_SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}"}


@dataclass(frozen=True)
class Paper:
    """A publication; ``authors`` are (family name, given names)."""

    key: str
    title: str
    authors: tuple[tuple[str, str], ...]
    venue: str
    year: int
    url: str


PAPER = Paper(
    key="havaldar2024llp",
    title="Learning from Label Proportions: Bootstrapping Supervised Learners via Belief Propagation",
    authors=(
        ("Havaldar", "Shreyas"),
        ("Sharma", "Navodita"),
        ("Sareen", "Shubhi"),
        ("Shanmugam", "Karthikeyan"),
        ("Raghuveer", "Aravindan"),
    ),
    venue="International Conference on Learning Representations (ICLR)",
    year=2024,
    url="https://openreview.net/forum?id=KQe9tHd0k8",
)
"""The paper that llpbench was built from."""


def suite_bibtex(version: str, note: str = "") -> str:
    """The software as a BibTeX entry; ``note`` may say which board or suite was used."""
    fields = {"title": f"{{{TITLE}}}", "author": f"{{{DEVELOPERS}}}", "version": tex(version), "note": tex(note)}
    return _entry("software", "llpbench", fields)


def frozen_bibtex(suite: Suite, part: str, version: str) -> str:
    """A suite, or a part of it, with the version of llpbench as a BibTeX entry."""
    note = f"Suite version {suite.version}, "
    note += f"part {part}, " if part else ""
    note += "" if suite.published else "a draft, "
    fields = {
        "title": f"{{{tex(f'{suite.name}: {_WHAT}')}}}",
        "author": f"{{{DEVELOPERS}}}",
        "howpublished": "" if suite.citation.startswith(suite.name) else tex(suite.citation),
        "note": tex(f"{note}protocol {suite.protocol}, llpbench {version}"),
        "year": suite.published[:4],
    }
    return _entry("misc", f"{suite.name}-{part}" if part else suite.name, fields)


def paper_bibtex(paper: Paper = PAPER) -> str:
    """A publication as a BibTeX entry."""
    authors = " and ".join(f"{tex(family)}, {tex(given)}" for family, given in paper.authors)
    fields = {
        "title": f"{{{tex(paper.title)}}}",
        "author": authors,
        "booktitle": tex(paper.venue),
        "year": str(paper.year),
        "url": paper.url,
    }
    return _entry("inproceedings", paper.key, fields)


def bibtex(version: str, note: str = "") -> str:
    """The entries of the software and of its paper."""
    return f"{suite_bibtex(version, note)}\n\n{paper_bibtex()}"


def tex(text: str) -> str:
    """Escape the special characters of TeX."""
    return "".join(_SPECIAL.get(c, c) for c in text)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [f"  {name:<9} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
