"""Tables on the terminal, with rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from llpbench.report.tables import Table

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = {"best": "bold", "second": "underline", "": ""}


def print_tables(tables: Iterable[Table], console: Console, notes: int = 8) -> None:
    """Print each table; reasons for missing numbers follow, the first few of them in full."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    for table in tables:
        console.print(Text(table.title, style="bold"), soft_wrap=True)
        if table.methods:
            grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
            grid.add_column("method", no_wrap=True)
            for size in table.bag_sizes:
                grid.add_column(f"bag {size}", justify="right", no_wrap=True)
            for method in table.methods:
                entries = [Text(e.text, style=_STYLE[e.mark] if e.number else "dim") for e in table.row(method)]
                grid.add_row(Text(method), *entries)
            console.print(grid)
        for note in table.notes[:notes]:
            console.print(Text(f"  {note}", style="dim"), soft_wrap=True)
        if len(table.notes) > notes:
            console.print(Text(f"  … and {len(table.notes) - notes} more (llpbench status)", style="dim"))
