"""What of a result follows from its cell: it is derived again and compared, so that nobody has to be believed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from llpbench.board.validate import Unsound
from llpbench.contracts.cell import OWN_SIZES, USUAL, Cell
from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.result import CellResult

_LEAST_MEMORY_MB = 15.0  # an interpreter with numpy takes more, and nothing can be fitted without
_SLACK = 1.1  # a limit is looked at from time to time, so it may be passed by a little
_EVEN_SCHEMES = (USUAL.scheme, "by-feature", "cluster-dirichlet", "proportion-dirichlet")
_ROUNDING = 0.0005  # published seconds have three decimals


def check_derived(result: CellResult, classes: Iterable[int]) -> None:
    """Refuse a result with a number whose seeds, noise, bags or costs are not what its cell gives.

    Args:
        result: a result with status ``ok``.
        classes: of its dataset; several numbers where only its predictions could tell (options may change it).
    """
    if not result.rows or not result.bags:
        raise Unsound("it does not say how many rows and bags it had")
    if not (result.limits or result.predictions_only):
        raise Unsound("it does not say which limits it ran under")
    for name in ("timeout", "memory_mb", "threads") if result.protocol > 1 and not result.predictions_only else ():
        if not result.limits.get(name, 0.0) > 0:
            raise Unsound(f"it does not say which limits it ran under: {name} is {result.limits.get(name)}")
    if not float(result.limits.get("threads", 1.0)).is_integer():
        raise Unsound(f"it says that it ran with {result.limits['threads']:g} threads, which is no number of threads")
    _check_seeds(result)
    _check_noise(result, classes)
    _check_bags(result)
    _check_rate(result)
    _check_card(result)
    if not result.predictions_only:  # seconds are as told, and shown so
        _check_costs(result)
    _check_shares(result)


def check_noise_named(cell: Cell) -> None:
    """Refuse settings of a noise that is not there: such a cell would stand in the place of one without them."""
    unused = (cell.delta, cell.mechanism) != (USUAL.delta, USUAL.mechanism)
    if cell.noise == USUAL.noise and unused:
        raise Unsound(f"it has no noise on counts, and states delta {cell.delta:g} and mechanism {cell.mechanism!r}")


def derived_seeds(cell: Cell) -> dict[str, int]:
    """The seeds of a cell by purpose."""
    from llpbench.experiment.fit_cell import method_seed
    from llpbench.experiment.split import bags_seed, split_seed

    return {"split": split_seed(cell), "bags": bags_seed(cell), "method": method_seed(cell)}


def derived_count_sd(cell: Cell, classes: int) -> float:
    """The standard deviation of the noise on each count of a cell."""
    from llpbench.experiment.privacy import count_noise_sd, count_sensitivity, epsilon_of

    return count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, count_sensitivity(classes))


def derived_bags(cell: Cell, rows: int) -> int | None:
    """How many bags the rows of a part make; None where the scheme draws their sizes."""
    if cell.scheme not in _EVEN_SCHEMES:
        return None
    if cell.bag_size == OWN_SIZES:
        raise Unsound("its scheme needs a bag size")
    return -(-rows // cell.bag_size)


def _check_seeds(result: CellResult) -> None:
    for name, derived in derived_seeds(result.cell).items():
        if result.seeds.get(name) != derived:
            raise Unsound(f"its {name} seed is {result.seeds.get(name)}, the cell's is {derived}")


def _check_noise(result: CellResult, classes: Iterable[int]) -> None:
    try:
        wanted = [derived_count_sd(result.cell, number) for number in classes]
    except LLPBenchError as error:
        raise Unsound(f"its noise cannot be: {error}") from None
    if not any(math.isclose(result.count_sd, sd, rel_tol=1e-9, abs_tol=1e-12) for sd in wanted):
        words = " or ".join(f"{sd:.6g}" for sd in dict.fromkeys(wanted))
        raise Unsound(f"its count_sd is {result.count_sd:.6g}, that of its noise is {words}")


def _check_bags(result: CellResult) -> None:
    for part in ("train", "valid"):
        rows, bags = result.rows.get(part, 0), result.bags.get(part, 0)
        wanted = derived_bags(result.cell, rows) if result.cell.split == USUAL.split else None
        if rows < 1 or not 1 <= bags <= rows or (wanted is not None and bags != wanted):
            raise Unsound(f"it had {bags} bags of {rows} {part} rows, its cell makes {wanted or 'others'}")
    if result.rows.get("test", 0) < 1:
        raise Unsound("it had no test rows")
    wanted = derived_bags(result.cell, sum(result.rows.values())) if result.cell.split != USUAL.split else None
    if wanted is not None and sum(result.bags.values()) != wanted:
        raise Unsound(f"it had {sum(result.bags.values())} bags in all, its cell makes {wanted}")


def _check_rate(result: CellResult) -> None:
    """The known rate is shares, and without noise a whole number of the rows in training bags."""
    if any(not 0 <= share <= 1 for share in result.rate):
        raise Unsound(f"its known rate {result.rate} is not between 0 and 1")
    if len(result.rate) > 1 and abs(math.fsum(result.rate) - 1) > 1e-6:
        raise Unsound(f"the known rates of its classes add up to {math.fsum(result.rate):.6g}")
    if result.card is not None and result.rate and not result.count_sd:
        rows = result.card.rows
        if any(abs(share * rows - round(share * rows)) > 1e-6 * rows for share in result.rate):
            raise Unsound(f"no count of its {rows} rows in training bags gives its known rate")


def _check_card(result: CellResult) -> None:
    """What a bag card says twice must agree: with itself and with the numbers of bags and rows."""
    card = result.card
    if card is None:
        return
    rows = result.rows["train"]
    bagged = rows if result.cell.split != USUAL.split else round(rows * (1 - card.left_out))
    if card.bags != result.bags.get("train") or card.rows != bagged or not 0 <= card.left_out < 1:
        raise Unsound("its bag card is of other bags than it says it had")


def _check_costs(result: CellResult) -> None:
    """Seconds and memory are stated, not proved; but they must be possible and agree with one another."""
    if any(seconds < 0 for seconds in result.phases.values()):
        raise Unsound("seconds of a phase are negative")
    phases, fit = math.fsum(result.phases.values()), result.fit_seconds
    if not round(fit, 3) > 0 or not result.phases:  # as it is published
        raise Unsound(f"its fit_seconds are {fit:.3f} in {len(result.phases)} phases: no fit takes no time")
    if abs(phases - fit) > _ROUNDING * (len(result.phases) + 2) + 1e-6 * fit:
        raise Unsound(f"its phases take {phases:.3f} s, its fit_seconds are {fit:.3f}")
    if result.wall_seconds and fit > result.wall_seconds + _ROUNDING:
        raise Unsound(f"its fit_seconds are {fit:.3f}, more than the {result.wall_seconds:.3f} s of its process")
    timeout, memory = result.limits.get("timeout", math.inf), result.limits.get("memory_mb", math.inf)
    if fit > _SLACK * timeout + 60:
        raise Unsound(f"it took {fit:.0f} s, beyond its limit of {timeout:.0f}")
    if not _LEAST_MEMORY_MB <= result.peak_memory_mb <= _SLACK * memory + 64:
        raise Unsound(f"a peak memory of {result.peak_memory_mb:.0f} MB cannot be under a limit of {memory:.0f}")


def _check_shares(result: CellResult) -> None:
    for stage, value in result.pseudo_labels.items():
        if value is not None and not 0 <= value <= 1:
            raise Unsound(f"the AUROC {value:.4g} of its pseudo-labels ({stage}) is not between 0 and 1")
    for rule, chosen in result.selected.items():
        error = chosen.metrics.get("bag_error")
        if error is not None and error < 0:
            raise Unsound(f"its bag_error under {rule!r} is {error:.4g}, which no error is")
