"""Options that several verbs share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from llpbench.contracts.errors import LLPBenchError, UsageError
from llpbench.plugins.options import split_list
from llpbench.system.quantities import parse_duration, parse_memory

F = TypeVar("F", bound=Callable[..., Any])


class Names(click.ParamType[list[str]]):
    """A comma-separated list of registered names, completed by the shell."""

    name = "names"

    def __init__(self, shelf: str = "") -> None:
        self.shelf = shelf

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Cut the list at its commas."""
        del param, ctx
        return value if isinstance(value, list) else split_list(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that continue what is typed after the last comma."""
        del ctx, param
        from llpbench.plugins.registry import load_registry

        head, comma, last = incomplete.rpartition(",")
        try:
            entries = getattr(load_registry(), self.shelf) if self.shelf else ()
        except LLPBenchError:
            return []
        return [
            CompletionItem(head + comma + entry.spec.name, help=entry.spec.summary)
            for entry in entries
            if entry.spec.name.startswith(last)
        ]


class Numbers(click.ParamType[list[Any]]):
    """A comma-separated list of numbers."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Read every number, or say what a list looks like."""
        if isinstance(value, list):
            return value
        try:
            return [self.kind(text.strip()) for text in str(value).split(",") if text.strip()]
        except ValueError:
            wanted = "whole numbers" if self.kind is int else "numbers"
            self.fail(f"{value!r} is not a comma-separated list of {wanted}, e.g. 8,512.", param, ctx)


class Seeds(click.ParamType[Any]):
    """How many seeds, or which."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | list[int]:
        """Read a number, a list or a range, or say what they look like."""
        from llpbench.experiment.grid import parse_seeds

        try:
            seeds = parse_seeds(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)
        if not seeds or (isinstance(seeds, int) and seeds < 1):
            self.fail(f"{value!r}: at least one seed is needed (3 runs seeds 0, 1, 2).", param, ctx)
        return seeds


class Quantity(click.ParamType[float]):
    """A number with a unit, e.g. ``30m`` or ``8GB``."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the amount, or say what one looks like."""
        try:
            return self.parse(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


DURATION = Quantity("duration", parse_duration)
MEMORY = Quantity("memory", parse_memory)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator; ``--help`` lists them in the order given."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option_names(options: Callable[[Callable[[], None]], Callable[[], None]]) -> list[str]:
    """The names of the options that a decorator adds, in the order in which ``--help`` lists them."""

    def command() -> None:
        """Nothing but its options."""

    added: list[click.Parameter] = vars(options(command))["__click_params__"]
    return [option.name for option in reversed(added) if option.name]


grid_options = together(
    click.option("-d", "--datasets", type=Names("datasets"), help="Datasets, e.g. adult,marketing.  [default: adult]"),
    click.option("-b", "--bags", type=Numbers(int), help="Bag sizes.  [default: 8,32,128,512,1024,2048]"),
    click.option("--schemes", type=Names("schemes"), help="Ways of forming bags.  [default: random]"),
    click.option(
        "--split",
        type=click.Choice(["rows", "bags"]),
        help="What goes to training, validation and test: rows, with bags formed within each part, or whole bags.  "
        "[default: rows]",
    ),
    click.option("--noise", type=Names(), help="Privacy noise on counts: none,medium,high.  [default: none]"),
    click.option(
        "--epsilon",
        type=Numbers(float),
        help="Noise levels by their epsilon, e.g. 3,0.5, beside those of --noise; without --noise, these alone.",
    ),
    click.option("--delta", type=float, help="Delta of the privacy noise.  [default: 1e-5]"),
    click.option(
        "--mechanism",
        type=click.Choice(["gaussian", "analytic"]),
        help="How noise is sized: gaussian (the classic formula: no guarantee above epsilon 1) or analytic (the least "
        "valid noise at any epsilon).  [default: gaussian]",
    ),
    click.option(
        "--feature-noise", type=Numbers(float), help="Standard deviation of noise on features, e.g. 0.05,0.1."
    ),
    click.option("--backend", help="Backend of the networks: jax, tensorflow or torch.  [default: jax]"),
    click.option(
        "--folds", type=int, help="Fit K more times, on K folds over the bags: adds rule bags-cv.  [default: 0]"
    ),
)
"""The axes of a grid, without its methods and seeds."""

cell_options = together(
    click.option(
        "--executor", help="Where cells run, e.g. local or dask[scheduler=tcp://HOST:8786].  [default: local]"
    ),
    click.option("-j", "--jobs", type=int, help="Cells at once.  [default: cores / threads]"),
    click.option("--threads", type=int, help="Threads (and cores) of each cell.  [default: 1]"),
    click.option("--timeout", type=DURATION, help="Wall time a cell may take, e.g. 90, 30m, 2h.  [default: 1h]"),
    click.option(
        "--memory", type=MEMORY, help="Resident memory a cell may hold.  [default: 8GB, less on a small machine]"
    ),
    click.option(
        "--start", type=click.Choice(["fork", "spawn"]), help="How processes start.  [default: fork on Linux]"
    ),
    click.option("--data", type=click.Path(file_okay=False), help="Folder with the data files (or LLPBENCH_DATA)."),
    click.option("--offline", is_flag=True, default=None, help="Never ask the network for data."),
)
"""Where cells run, and what each is given."""


remake_options = together(
    click.option("--timeout", type=DURATION, help="Wall time a cell may take.  [default: as it was made]"),
    click.option("--memory", type=MEMORY, help="Memory a cell may hold.  [default: as it was made]"),
    click.option("--threads", type=click.IntRange(min=1), help="Threads of a cell.  [default: as it was made]"),
    click.option("--data", type=click.Path(file_okay=False), help="Folder with the data files (or LLPBENCH_DATA)."),
    click.option("--offline", is_flag=True, help="Never ask the network for data."),
)
"""How published cells are made again."""


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of suites that continue what is typed."""
    del ctx, param
    from llpbench.experiment.suites.file import suite_files
    from llpbench.plugins.registry import load_registry

    try:
        known = suite_files(load_registry())
    except LLPBenchError:
        return []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


def plugin_options(command: F) -> F:
    """``--plugin`` and ``--plugin-override``."""
    command = click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=click.Path(path_type=Path, dir_okay=False),
        help="A plugin in a single Python file; may be repeated.",
    )(command)
    return click.option(
        "--plugin-override",
        "override",
        multiple=True,
        metavar="NAME",
        help="Where two plugins claim NAME, the one loaded last wins instead of an error.",
    )(command)


def folder_argument(command: F) -> F:
    """The results folder, the newest one by default."""
    return click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))(command)


def published_option(command: F) -> F:
    """``--board DIR``: a leaderboard whose published results are read, too."""
    return click.option(
        "--board",
        type=click.Path(path_type=Path, file_okay=False),
        help="With --suite: also read the published results of this leaderboard folder. `leaderboards` falls back to "
        "the board that comes with llpbench.",
    )(command)
