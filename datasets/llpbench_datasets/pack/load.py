"""Load a table of the pack: read, draw rows, form the groups, split, encode. One loader serves all tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from llpbench import Categories, Column, Files, IntArray, Numbers, Part, Split
from llpbench_datasets.dealing import deal_rows
from llpbench_datasets.encoding import encode_parts
from llpbench_datasets.pack.columns import GROUP, to_table
from llpbench_datasets.pack.declared import DeclaredTable, declared_tables
from llpbench_datasets.pack.reading import read_columns
from llpbench_datasets.pack.words import frequent_words, word_features
from llpbench_datasets.tables import LabelledTable, cached_table

SHARES = (0.6, 0.2, 0.2)
LEVELS = 50
"""Levels of a category that keep a column of their own; all rarer ones share one."""
LEAST = 10
"""Rows of the smallest natural group. The count of a smaller one would nearly be a label."""
OTHERS = "(others)"


class _Loaders:
    """``LOADERS.name`` is the loader of the table ``name``."""

    def __getattr__(self, name: str) -> partial[Split]:
        if name not in declared_tables():
            raise AttributeError(f"the pack has no table {name!r}")
        return partial(load, declared_tables()[name])


LOADERS = _Loaders()


def load(
    table: DeclaredTable, files: Files, *, seed: int, bags: str = "none", rows: int = 0, encoding: str = "onehot"
) -> Split:
    """Load a table: 60 % of the rows, or of the bags, for training, 20 % for validation, 20 % for the test.

    Args:
        table: the description.
        files: the dataset's files.
        seed: seed of the draw of rows and of the split.
        bags: the name of a kind of group, or ``"none"``.
        rows: rows to draw; 0 takes all.
        encoding: ``"onehot"`` or ``"ordinal"``.
    """
    path = files.path(table.file.path)
    key = [table.file.sha256, msgspec.json.encode((table.label, table.features, table.bags)).decode()]
    found = cached_table(files.cache, key, lambda: to_table(table, read_columns(path, table)))
    if 0 < rows < len(found):
        found = found.take(np.sort(np.random.default_rng([seed, 1]).permutation(len(found))[:rows]))
    bag_of = None
    if bags != "none":
        found, bag_of = with_groups(found, GROUP + bags)
    alone = table.bags[bags] if bags != "none" else ()
    # A column that alone makes the bags has no value in common between the parts: it is no feature.
    unused = {c.name for c in found.columns if c.name.startswith(GROUP) or alone == (c.name,)}
    found = LabelledTable(tuple(c for c in found.columns if c.name not in unused), found.labels)
    parts = deal_rows(len(found), bag_of, SHARES, seed, f"{table.name}[bags={bags}]")
    return encode_table(found, parts, encoding, text=table.features.text, bag_of=bag_of)


def with_groups(table: LabelledTable, name: str) -> tuple[LabelledTable, IntArray]:
    """The rows that belong to a group of at least ``LEAST`` rows, and the group of each."""
    (column,) = (c for c in table.columns if c.name == name)
    assert isinstance(column, Categories)
    large = np.bincount(column.codes, minlength=len(column.levels)) >= LEAST
    large &= np.array([level is not None for level in column.levels])
    kept = np.flatnonzero(large[column.codes])
    return table.take(kept), column.codes[kept].astype(np.int64)


def encode_table(
    table: LabelledTable, parts: Sequence[IntArray], encoding: str, *, text: str = "", bag_of: IntArray | None = None
) -> Split:
    """The split of a table: rare levels pooled, then encoded by the training rows; words of the text are added."""
    plain = [pool(c, parts[0]) for c in table.columns if c.name != text]
    split = encode_parts(LabelledTable(tuple(plain), table.labels), parts, encoding, bag_of=bag_of)
    if not text:
        return split
    (column,) = (c for c in table.columns if c.name == text)
    assert isinstance(column, Categories)
    texts = [[str(column.levels[code]) for code in column.codes[part]] for part in parts]
    words = frequent_words(texts[0])
    added = tuple(Column(f"{text}: {word}", "numeric") for word in words)
    train, valid, test = (
        Part(np.hstack([part.X, word_features(of, words)]), part.y, part.bag_of)
        for part, of in zip((split.train, split.valid, split.test), texts, strict=True)
    )
    return Split(train, valid, test, classes=split.classes, columns=(*split.columns, *added))


def pool(column: Numbers | Categories, train: IntArray) -> Numbers | Categories:
    """A category with its ``LEVELS`` most frequent levels in training rows, all others as one; numbers unchanged."""
    if isinstance(column, Numbers) or len(column.levels) <= LEVELS:
        return column
    counts = np.bincount(column.codes[train], minlength=len(column.levels))
    kept = np.sort(np.argsort(-counts, kind="stable")[:LEVELS])
    place = np.full(len(column.levels), LEVELS, np.int32)
    place[kept] = np.arange(LEVELS, dtype=np.int32)
    return Categories(column.name, place[column.codes], (*(column.levels[i] for i in kept), OTHERS))
