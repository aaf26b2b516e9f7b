"""What the attack on tables of counts finds: data frames, a text and a page."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.owndata.report_page import make_frame, page, text_of
from llpbench.system.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd

LEVELS = (0.9, 0.99, 0.999)
"""Probabilities from which on a label counts as certain."""
LIMITS = (
    "This is one attack, not a proof of privacy. An attacker who knows more than the columns of this table, or uses "
    "another method, can find more labels.",
    "Rows with noise are simulated draws. The protection of noise is its epsilon, whatever this attack finds.",
    "Certainty is that of the model. Only labels that follow by arithmetic are certain without one, and of these only "
    "what single counts imply one after the other is found.",
    "Columns alone can make a label nearly certain, because the tables tell how labels depend on columns. The "
    "difference to this first line is what the counts of a row's own groups add.",
)
_MOST_GROUPS = 8
_WIDTH = 100
Table = list[list[str]]


@dataclass(frozen=True)
class Disclosure:
    """How many labels of single rows tables of counts give away. Returned by ``llpbench.disclosure``.

    Attributes:
        table: a line for each release (the prior of the attack, the tables as published, and with noise) and group;
            the lines with an empty ``grouping`` are about all rows. ``rows`` are in the group, ``by_arithmetic`` have
            a label that the counts imply without a model; ``certain_90``, ``certain_99`` and ``certain_99.9`` have one
            whose probability is at least that. With true labels, ``right_90``, ... are those of them whose label is
            right, and ``right`` those of all rows. ``noise_sd`` is added to each count, and ``converged`` is the share
            of draws in which belief propagation settled. Numbers are means over draws.
        rows: for each row of a table, as published: its most probable ``label``, the ``probability`` of it,
            ``by_arithmetic`` and, with true labels, ``right``. The index is that of the table.
        classes: names of the classes.
        counts: number of published counts.
        groupings: names of the tables.
        draws: draws of the noise.
        delta: of the noise.
        notes: sentences about the tables.
    """

    table: pd.DataFrame = field(repr=False)
    rows: pd.DataFrame = field(repr=False)
    classes: tuple[str, ...]
    counts: int
    groupings: tuple[str, ...]
    draws: int
    delta: float
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        from tabulate import tabulate

        parts = [self.title(), *_wrapped([self.verdict()])]
        for heading, (first, *lines) in self._tables():
            align = ("left", *["right"] * (len(first) - 1))
            text = tabulate(lines, first, tablefmt="plain", colalign=align, disable_numparse=True)
            parts += ["", heading, textwrap.indent(text, "  ")]
        if self.warnings():
            parts += ["", "Warnings", *_wrapped(self.warnings())]
        return "\n".join([*parts, "", "Limits", *_wrapped(LIMITS)])

    def title(self) -> str:
        """What was attacked."""
        n = len(self.rows)
        s = "s" if len(self.groupings) > 1 else ""
        return (
            f"{n:,} rows, classes {', '.join(self.classes)}; {len(self.groupings)} table{s} of {self.counts:,} counts "
            f"({self.counts / n:.2g} per row)"
        )

    def verdict(self) -> str:
        """One sentence: how many labels the counts give away."""
        alone, published = self._overall()[:2]
        more = max(published["certain_99"] - alone["certain_99"], 0.0)
        return (
            f"The labels of {published['certain_99']:,.0f} of {published['rows']:,.0f} rows are certain at 99 %, "
            f"{more:,.0f} more than by {alone['release']}; {published['by_arithmetic']:,.0f} follow by arithmetic."
        )

    def warnings(self) -> list[str]:
        """Sentences about the tables, and about messages that did not settle."""
        open_ = [line["release"] for line in self._overall() if line["converged"] < 1.0]
        text = f"belief propagation did not converge ({', '.join(open_)}): these numbers are approximate."
        return [*self.notes, *([text] if open_ else [])]

    def to_dict(self) -> dict[str, Any]:
        """The table and the facts as plain values."""
        lines = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        facts = {"rows": len(self.rows), "classes": list(self.classes), "counts": self.counts, "draws": self.draws}
        return {**facts, "delta": self.delta, "warnings": self.warnings(), "limits": list(LIMITS), "table": lines}

    def html(self) -> str:
        """The report as a self-contained page."""
        head = f'<h1>What the tables reveal</h1><p class="quiet">{text_of(self.title())}</p>'
        parts = [f'<header>{head}<p class="verdict">{text_of(self.verdict())}</p></header>']
        if self.warnings():
            parts.append(f'<section class="wide warn"><h2>Warnings</h2>{_list(self.warnings())}</section>')
        for heading, lines in self._tables():
            rows = "".join("<tr>" + "".join(f"<td>{text_of(cell)}</td>" for cell in line) + "</tr>" for line in lines)
            parts.append(f'<section class="wide"><h2>{text_of(heading)}</h2><table>{rows}</table></section>')
        parts.append(f'<section class="wide"><h2>Limits</h2>{_list(LIMITS)}</section>')
        return page("What the tables reveal", parts)

    def to_html(self, path: str | Path) -> Path:
        """Write the page to a file."""
        write_atomically(Path(path), self.html().encode())
        return Path(path)

    def _repr_html_(self) -> str:
        return make_frame(self.html(), "What the tables reveal")

    def _overall(self) -> list[dict[Any, Any]]:
        return self.table[self.table["grouping"] == ""].to_dict("records")

    def _tables(self) -> list[tuple[str, Table]]:
        """The parts of the report: a heading, and a table whose first line has the names of its columns."""
        lines, names = self._overall(), [f"{100 * level:g}" for level in LEVELS]
        told = "right" in self.table.columns
        head = ["", "noise sd", "by arithmetic", *(f"at {name} %" for name in names), *(["right"] if told else [])]
        certain = [head]
        for line in lines:
            shown = f"{line['noise_sd']:.2f}" if line["noise_sd"] else ""
            arithmetic = _share(line["by_arithmetic"], line["rows"]) if line["release"] == "as published" else ""
            values = [_share(line[f"certain_{name}"], line["rows"]) for name in names]
            right = [f"{100 * line['right'] / line['rows']:.1f} %"] if told else []
            certain.append([line["release"], shown, arithmetic, *values, *right])
        parts = [("Rows whose label is certain", certain)]
        if told:
            rows = [[line["release"], *(_share_right(line, name) for name in names)] for line in lines]
            parts.append(("Of these, right", [["", *(f"at {name} %" for name in names)], *rows]))
        most = self.most_exposed()
        if len(most):
            body = [
                [f"{line['grouping']}: {line['group']}", f"{line['rows']:,}", f"{line['by_arithmetic']:,.0f}"]
                + [f"{line[f'certain_{name}']:,.0f}" for name in names]
                for line in most.to_dict("records")
            ]
            head = ["", "rows", "by arithmetic", *(f"at {name} %" for name in names)]
            parts.append(("Groups with the most exposed rows, as published", [head, *body]))
        return parts

    def most_exposed(self, most: int = _MOST_GROUPS) -> pd.DataFrame:
        """The groups with the largest share of rows that the counts, and not the columns alone, make certain."""
        groups = self.table[self.table["grouping"] != ""]
        alone, published = (groups[groups["release"] == name] for name in self.table["release"].unique()[:2])
        added = published["certain_99"].to_numpy() - alone["certain_99"].to_numpy()
        found = published.assign(added=added / published["rows"])
        found = found.loc[(found["added"] > 0.0) | (found["by_arithmetic"] > 0)]
        ordered: pd.DataFrame = found.sort_values(["added", "rows"], ascending=False, kind="stable")
        return ordered.head(most)


def _share(number: float, rows: float) -> str:
    return f"{number:,.0f} ({100 * number / rows:.1f} %)"


def _share_right(line: dict[Any, Any], name: str) -> str:
    number = line[f"certain_{name}"]
    return f"{100 * line[f'right_{name}'] / number:.2f} %" if number else "no rows"


def _wrapped(sentences: Any) -> list[str]:
    return [textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ") for text in sentences]


def _list(sentences: Any) -> str:
    return f"<ul>{''.join(f'<li>{text_of(text)}</li>' for text in sentences)}</ul>"
