"""What a model remembers of its fit while it is in memory. None of it goes into a model file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llpbench.contracts.data import IntArray
from llpbench.owndata.fitting.trainer import Trainer
from llpbench.owndata.judging.assessment import Halves, UnseenBags

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Memory:
    """The user's table and bags, and the models that judged the fit.

    Attributes:
        trainer: features, bags and counts, and how to fit again.
        table: the rows of the table that were learned from, with all columns.
        rows: number of each of these rows in the table that was given.
        given: number of rows of that table.
        train: numbers of the bags that the model learned from.
        held: numbers of those held back.
        main: the model, with the bags that it did not learn from.
        halves: fits on halves of the bags, each with the bags of the other.
    """

    trainer: Trainer
    table: pd.DataFrame
    rows: IntArray
    given: int
    train: IntArray
    held: IntArray
    main: UnseenBags
    halves: tuple[Halves, ...]
