"""Your own labelled table, from a CSV file."""

from __future__ import annotations

from dataclasses import dataclass

from llpbench import DatasetSpec, Param, hookimpl
from llpbench_datasets.options import encoding_param


@dataclass(frozen=True)
class FileParam(Param):
    """A path. As it is typed, the checksum of the file's content is added: ``data.csv#0123456789abcdef``.

    So a cell's identity, and the name of its dataset in tables, hold the content: other bytes under the same path
    are another dataset. A path with a checksum is left as it is, and the loader demands that content.
    """

    def parse(self, text: str) -> str:
        """The path with its checksum; a file that cannot be read is an error before anything runs."""
        from llpbench_datasets.csv_table.source import pinned

        return pinned(text) if text else text


CSV = DatasetSpec(
    name="csv",
    factory="llpbench_datasets.csv_table.load:load",
    summary="your own labelled table: csv[path=data.csv;label=y]",
    params=(
        FileParam("path", "", names_file=True, doc="path of the file: UTF-8 text with column names in the first line"),
        Param("label", "", doc="name of the label column"),
        Param(
            "bag",
            "",
            doc="name of a column that identifies bags: it is not a feature, and no bag is split between training, "
            "validation and test; --bags is then not used (--schemes 'own-bags[most=500]' cuts larger bags)",
        ),
        Param(
            "positive",
            "",
            doc="the label of class 1, all others being class 0; by default classes are the sorted labels",
        ),
        Param("test", 0.1, low=0.01, high=0.45, doc="share of the rows (with bag=: of the bags) used for testing"),
        Param("validation", 0.1, low=0.01, high=0.45, doc="share of the rows, or bags, used for validation"),
        Param(
            "separator",
            "auto",
            choices=("auto", "comma", "semicolon", "tab", "pipe"),
            doc="field separator; auto uses the most frequent candidate in the first line",
        ),
        encoding_param(),
    ),
    split="random, of rows or of whole bags; 80 / 10 / 10 % by default",
    own_bags="bag",
    check="llpbench_datasets.csv_table.source:check_columns",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``csv``."""
    return [CSV]
