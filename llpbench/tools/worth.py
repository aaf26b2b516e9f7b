"""Tables of what bags are worth in labelled rows, by method and bag size."""

from __future__ import annotations

from collections.abc import Iterable

from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.report.render import Wanted, table_rows
from llpbench.report.tables import Key, Table, TableEntry
from llpbench.results.table import Row
from llpbench.results.worth import bags_of, label_curves


def worth_tables(
    store: object, planned: Iterable[Planned], results: Iterable[CellResult], wanted: Wanted, *others: object
) -> list[Table]:
    """For each dataset, noise, rule and bound: the labelled rows with which the bound equals each method."""
    del store, others
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in table_rows(planned, results, wanted):
        groups.setdefault((row.dataset, row.noise, row.rule), []).append(row)
    return [table for rows in groups.values() for table in _tables(rows, wanted)]


def _tables(rows: list[Row], wanted: Wanted) -> list[Table]:
    """One table for each bound with a number of labelled rows."""
    columns: dict[Key, str] = {}
    entries: dict[str, dict[tuple[str, Key], TableEntry]] = {}
    for size in sorted({row.bag_size for row in rows if not row.oracle}):
        here = [row for row in rows if row.bag_size == size]
        bags = bags_of(here)
        columns[size] = here[0].bags_name + (f" ({bags:,} bags)" if bags is not None else "")
        for bound, curve in label_curves(here, higher_is_better=wanted.metric.higher_is_better).items():
            for row in here:
                if not row.oracle:
                    entry = TableEntry(row.status, number=False)
                    if row.mean is not None:
                        entry = TableEntry(curve.worth_words(row.mean))
                    entries.setdefault(bound, {})[row.method, size] = entry
    first = rows[0]
    return [
        Table(
            about=(first.dataset,) if first.noise == "none" else (first.dataset, f"noise {first.noise}"),
            rule=first.rule,
            what=f"labelled rows with which {bound} has the same {wanted.metric.words or wanted.metric.name}",
            columns=columns,
            methods=list(dict.fromkeys(method for method, _ in found)),
            entries=found,
        )
        for bound, found in entries.items()
    ]
