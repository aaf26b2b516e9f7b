"""Tables on the terminal, with rich."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from llpbench.contracts.errors import printable
from llpbench.report.tables import Table

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = {"best": "bold", "second": "underline", "": ""}


def print_tables(tables: Iterable[Table], console: Console, notes: int = 8) -> None:
    """Print each table, and below it the first few notes."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    for table in tables:
        console.print(Text(printable(table.title), style="bold"), soft_wrap=True)
        if table.methods:
            narrow = console.is_terminal and console.width < _width(table)
            if not console.is_terminal:
                console.width = max(console.width, _width(table))
            grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
            grid.add_column("method", no_wrap=True)
            for heading in table.columns.values():
                grid.add_column(Text(printable(heading)), justify="right", no_wrap=True)
            for method in table.methods:
                grid.add_row(
                    Text(printable(method)),
                    *(
                        Text(
                            printable(entry.text).replace(" ", "\n") if narrow else printable(entry.text),
                            _STYLE[entry.mark],
                        )
                        if entry.number
                        else Text(printable(entry.text), "dim")
                        for entry in table.row(method)
                    ),
                )
            console.print(grid)
        for note in table.notes[:notes]:
            _print_indented(note, console)
        if len(table.notes) > notes:
            console.print(Text(f"  … and {len(table.notes) - notes} more (llpbench status)", style="dim"))


def print_cards(lines: Iterable[str], console: Console) -> None:
    """Print the bag cards of tables, one line for each setting."""
    from rich.text import Text

    lines = list(lines)
    if lines:
        console.print(Text("bags", style="bold"))
    for line in lines:
        _print_indented(line, console)


def _print_indented(line: str, console: Console) -> None:
    """Print a dim line; on a terminal it is wrapped, in a file or pipe it stays one line."""
    from rich.padding import Padding
    from rich.text import Text

    text = Text(printable(line), style="dim")
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, 2), expand=False))
    else:
        console.print(Text("  ") + text, soft_wrap=True)


def _width(table: Table) -> int:
    columns = [
        max(len(heading), *(len(table.row(m)[i].text) for m in table.methods))
        for i, heading in enumerate(table.columns.values())
    ]
    return sum(column + 3 for column in columns) + max(len("method"), *map(len, table.methods)) + 4
