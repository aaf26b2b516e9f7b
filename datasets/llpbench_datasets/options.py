"""Options that several datasets share."""

from __future__ import annotations

from llpbench import Param


def encoding_param(remark: str = "") -> Param:
    """The option ``encoding`` of a table: how categories become features."""
    doc = "categories as 0/1 columns, or as one number each"
    return Param("encoding", "onehot", choices=("onehot", "ordinal"), doc=f"{doc} ({remark})" if remark else doc)
