"""Options that several datasets share."""

from __future__ import annotations

from llpbench import Param


def encoding_param(remark: str = "", others: tuple[str, ...] = ()) -> Param:
    """The option ``encoding`` of a table: how categories become features; ``others`` are further choices."""
    doc = "categories as 0/1 columns, or as one number each"
    doc = f"{doc} ({remark})" if remark else doc
    return Param("encoding", "onehot", choices=("onehot", "ordinal", *others), doc=doc)
