"""Values of a result that follow from its cell: they are derived again and compared."""

from __future__ import annotations

import math
from collections.abc import Iterable

from llpbench.board.validate import Unsound
from llpbench.contracts.cell import OWN_SIZES, USUAL, Cell
from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.result import CellResult

_EVEN_SCHEMES = (USUAL.scheme, "by-feature", "cluster-dirichlet", "proportion-dirichlet")


def check_derived(result: CellResult, classes: Iterable[int]) -> None:
    """Raise ``Unsound`` if the seeds, noise or bags of a result are not those of its cell.

    Args:
        result: a result with status ``ok``.
        classes: the possible numbers of classes of its dataset.
    """
    _check_seeds(result)
    _check_noise(result, classes)
    _check_bags(result)


def derived_seeds(cell: Cell) -> dict[str, int]:
    """Return the seeds of a cell by purpose."""
    from llpbench.experiment.fit_cell import method_seed
    from llpbench.experiment.split import bags_seed, split_seed

    return {"split": split_seed(cell), "bags": bags_seed(cell), "method": method_seed(cell)}


def derived_count_sd(cell: Cell, classes: int) -> float:
    """Return the standard deviation of the noise on each count of a cell."""
    from llpbench.experiment.privacy import count_noise_sd, count_sensitivity, epsilon_of

    return count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, count_sensitivity(classes))


def derived_bags(cell: Cell, rows: int) -> int | None:
    """Return the number of bags that rows are divided into; None if the scheme draws their sizes."""
    if cell.scheme not in _EVEN_SCHEMES or cell.bag_size == OWN_SIZES:
        return None
    return -(-rows // cell.bag_size)


def _check_seeds(result: CellResult) -> None:
    for name, derived in derived_seeds(result.cell).items():
        if result.seeds.get(name) != derived:
            raise Unsound(f"its {name} seed is {result.seeds.get(name)}, expected {derived}")


def _check_noise(result: CellResult, classes: Iterable[int]) -> None:
    try:
        expected = [derived_count_sd(result.cell, number) for number in classes]
    except LLPBenchError as error:
        raise Unsound(f"invalid noise: {error}") from None
    if not any(math.isclose(result.count_sd, sd, rel_tol=1e-9, abs_tol=1e-12) for sd in expected):
        words = " or ".join(f"{sd:.6g}" for sd in dict.fromkeys(expected))
        raise Unsound(f"its count_sd is {result.count_sd:.6g}, expected {words}")


def _check_bags(result: CellResult) -> None:
    if result.rows.get("test", 0) < 1:
        raise Unsound("it has no test rows")
    if result.cell.split != USUAL.split:  # whole bags are divided among the parts
        parts = {"all": (sum(result.rows.values()), sum(result.bags.values()))}
    else:
        parts = {part: (result.rows.get(part, 0), result.bags.get(part, 0)) for part in ("train", "valid")}
    for part, (rows, bags) in parts.items():
        expected = derived_bags(result.cell, rows)
        if not 1 <= bags <= rows or (expected is not None and bags != expected):
            raise Unsound(f"it has {bags} bags of {rows} {part} rows, expected {expected or 'at least one'}")
