"""Cells and results: ids that stay, files that show when they were touched."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle

import msgspec
import pytest
from helpers import make_cell, make_result, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench.contracts.cell import Cell, JoinedScheme
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult
from llpbench.results.sealing import Damaged, decode_result, encode_result

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none(),
)
OPTIONS = st.dictionaries(st.text("abcdef_", min_size=1), SCALARS, max_size=4)
CELLS = st.builds(
    Cell,
    dataset=st.sampled_from(["adult", "toy"]),
    method=st.sampled_from(["dllp", "guess"]),
    bag_size=st.integers(1, 4096),
    seed=st.integers(0, 9),
    params=OPTIONS,
    dataset_options=OPTIONS,
    noise=st.sampled_from(["none", "high", "epsilon=0.3"]),
    feature_noise=st.sampled_from([0.0, 0.05]),
    backend=st.sampled_from(["", "jax"]),
)


@quick
@given(CELLS)
def test_id_is_unchanged_by_serialisation(cell: Cell) -> None:
    job = Job(cell=cell, method_name="l", dataset_name="d", out="/x")
    read = msgspec.json.decode(msgspec.json.encode(job), type=Job)
    assert read == job
    assert read.cell.id == cell.id
    assert len(cell.id) == 16
    assert int(cell.id, 16) >= 0


@quick
@given(OPTIONS)
def test_id_does_not_depend_on_the_order_of_options(options: dict[str, object]) -> None:
    turned = dict(reversed(options.items()))
    assert make_cell(params=options).id == make_cell(params=turned).id
    assert make_cell(dataset_options=options).id == make_cell(dataset_options=turned).id


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "other"},
        {"method": "other"},
        {"bag_size": 9},
        {"seed": 1},
        {"params": {"lr": 0.1}},
        {"dataset_options": {"encoding": "ordinal"}},
        {"scheme": "random-uneven"},
        {"scheme_options": {"spread": 0.1}},
        {"noise": "high"},
        {"delta": 1e-6},
        {"mechanism": "laplace"},
        {"feature_noise": 0.1},
        {"backend": "jax"},
        {"preset": "paper"},
        {"tuning": True},
        {"folds": 5},
        {"split": "bags"},
        {"joined": (JoinedScheme("own-bags"),)},
    ],
)
def test_every_field_is_part_of_the_id(change: dict[str, object]) -> None:
    assert make_cell(**change).id != make_cell().id
    assert set(change) <= set(Cell.__struct_fields__)


def test_id_test_covers_every_field() -> None:
    tried = next(m for m in test_every_field_is_part_of_the_id.pytestmark if m.name == "parametrize").args[1]
    assert {name for change in tried for name in change} == set(Cell.__struct_fields__)


def test_new_field_does_not_change_old_ids() -> None:
    later = msgspec.defstruct(
        "Later", [("added", str, "usual")], bases=(Cell,), kw_only=True, frozen=True, omit_defaults=True
    )
    facts = {"dataset": "toy", "method": "guess", "bag_size": 8, "seed": 0, "params": {"lr": 0.5}}
    assert later(**facts).id == Cell(**facts).id
    assert later(**facts, added="new").id != Cell(**facts).id


def test_ids_do_not_change_between_versions() -> None:
    # Results are filed under these ids: a change here orphans every published result.
    facts = {"dataset": "adult", "method": "mean-ridge", "bag_size": 8, "seed": 2, "params": {"b": 0.5, "a": 1}}
    plain = '"feature_noise":0.0,"method":"mean-ridge","params":{"a":1,"b":0.5},"seed":2}'
    noisy = plain.replace('"params"', '"noise":"high","params"')
    for cell, text in (
        (Cell(**facts), '{"bag_size":8,"dataset":"adult",' + plain),
        (Cell(**facts, noise="high"), '{"bag_size":8,"dataset":"adult","delta":0.00001,' + noisy),
    ):
        assert cell.id == hashlib.sha256(text.encode()).hexdigest()[:16]


@quick
@given(CELLS)
def test_equal_cells_have_equal_ids(cell: Cell) -> None:
    anew = {
        name: float(str(value)) if isinstance(value, float) else copy.deepcopy(value)
        for name, value in msgspec.structs.asdict(cell).items()
    }
    for same in (Cell(**anew), pickle.loads(pickle.dumps(cell)), msgspec.convert(msgspec.to_builtins(cell), Cell)):
        assert same == cell
        assert same.id == cell.id


def test_unknown_field_of_a_cell_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `bagsize`"):
        msgspec.json.decode(b'{"dataset":"a","method":"b","bag_size":1,"seed":0,"bagsize":2}', type=Cell)


# -- result files ------------------------------------------------------------------------------------------------------


@quick
@given(CELLS, st.floats(0, 1), st.dictionaries(st.text(max_size=5), st.floats(0, 1e6), max_size=3))
def test_result_round_trips(cell: Cell, value: float, phases: dict[str, float]) -> None:
    result = make_result(cell, value, phases=phases, fit_seconds=3, notes={"n": 1, "t": "x", "b": True, "z": None})
    assert decode_result(encode_result(result)) == result
    assert encode_result(decode_result(encode_result(result))) == encode_result(result)


def test_result_file_is_indented_json() -> None:
    lines = encode_result(make_result()).decode().splitlines()
    assert len(lines) > 10
    assert any('"status": "ok"' in line for line in lines)


@quick
@given(st.data())
def test_truncated_file_is_damaged(data: st.DataObject) -> None:
    whole = encode_result(make_result()).rstrip()  # of its padding
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Damaged):
        decode_result(whole[:cut])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"auroc": 0.5', '"auroc": 0.9'),
        ('"status": "ok"', '"status": "failed"'),
        ('"seed": 0', '"seed": 1'),
        ('"label": "guess"', '"label": "better"'),
        ('"report": 3', '"report": 4'),
        ('"status": "ok"', '"status": "splendid"'),
        ('"digest": "', '"digest": "0'),
        ('"digest"', '"digset"'),
        ('"result"', '"results"'),
        ('"bag_size": 8', '"bag_size": "8"'),
        ('"bag_size": 8', '"bag_size": 8, "extra": 1'),
    ],
)
def test_file_edited_by_hand_is_damaged(old: str, new: str) -> None:
    text = encode_result(make_result()).decode()
    assert old in text
    with pytest.raises(Damaged):
        decode_result(text.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    "data", [b"", b"null", b"3", b"[]", b'"x"', b"{}", b"\xff\xfe\x00", b'{"result": 3}', b"\x00" * 99]
)
def test_file_without_a_result_is_damaged(data: bytes) -> None:
    with pytest.raises(Damaged, match="not a readable result"):
        decode_result(data)


def test_reformatted_file_is_valid() -> None:
    result = make_result(fit_seconds=2.0)
    assert decode_result(json.dumps(json.loads(encode_result(result))).encode()) == result


def test_result_under_another_cells_id_is_damaged() -> None:
    forged = CellResult(id=make_cell(seed=5).id, cell=make_cell(), status="ok")
    with pytest.raises(Damaged, match="not the id of its cell"):
        decode_result(encode_result(forged))
