"""Saved models: what is written is read back, and a hostile file is refused with a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import llpbench
from llpbench.contracts.errors import LLPBenchError, MethodError, UnknownNameError
from llpbench.estimator.model_file import Header, ModelFileError, read_model, write_model

Members = dict[str, bytes]


@pytest.fixture(scope="module")
def model() -> llpbench.LLPModel:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    bag = np.arange(200) % 20
    return llpbench.fit(X, bag, np.bincount(bag, X[:, 0] > 0), method="mean-ridge", classes=["no", "yes"])


def rewritten(model: llpbench.LLPModel, path: Path, change: Callable[[Members], Any]) -> Path:
    """The model's file with its members changed."""
    with zipfile.ZipFile(model.save(path)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def header(change: dict[str, Any]) -> Callable[[Members], None]:
    """Change entries of the header; ``...`` takes one out."""

    def apply(members: Members) -> None:
        head = {**json.loads(members["header.json"]), **change}
        members["header.json"] = json.dumps({k: v for k, v in head.items() if v is not ...}).encode()

    return apply


def array_bytes(array: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def put(name: str, content: bytes) -> Callable[[Members], None]:
    return lambda members: members.__setitem__(name, content)


def first_array(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Members], None]:
    """Change the array of the weights, found by its name in the header."""

    def apply(members: Members) -> None:
        number = json.loads(members["header.json"])["arrays"].index("weights_0")
        name = f"arrays/{number}.npy"
        members[name] = array_bytes(change(np.load(io.BytesIO(members[name]))))

    return apply


def lie_about_the_shape(members: Members) -> None:
    members["arrays/0.npy"] = array_bytes(np.zeros(4)).replace(b"(4,)", b"(9,)")


def test_a_model_is_read_back_whole(model: llpbench.LLPModel, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(50, 3))
    again = llpbench.load(model.save(tmp_path / "a" / "model"))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.classes_.tolist() == ["no", "yes"]
    assert again.params == model.params
    assert again.selected_ == model.selected_
    assert again.predict(X).tolist() == model.predict(X).tolist()
    first, second = tmp_path / "first", tmp_path / "second"
    assert model.save(first).read_bytes() == again.save(second).read_bytes()


@given(
    arrays=st.dictionaries(
        st.text(max_size=5),
        hnp.arrays(st.sampled_from(["<f4", "<f8", "<i4", ">i8", "?", "u1"]), hnp.array_shapes(min_dims=0, min_side=0)),
        max_size=4,
    ),
    scalars=st.dictionaries(
        st.text(min_size=6, max_size=9),
        st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        max_size=4,
    ),
)
@quick
def test_any_state_of_plain_values_goes_round(
    model: llpbench.LLPModel, tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, Any], scalars: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "state"
    facts = {f: getattr(model._header, f) for f in Header.__struct_fields__}
    write_model(path, Header(**facts), {**arrays, **scalars})
    _, state = read_model(path)
    assert set(state) == {*arrays, *scalars}
    for name, value in arrays.items():
        assert np.array_equal(state[name], value, equal_nan=value.dtype.kind == "f")
        assert np.asarray(state[name]).dtype == value.dtype.newbyteorder("=")
    for name, value in scalars.items():
        assert state[name] == value
        assert isinstance(state[name], bool) == isinstance(value, bool)


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, [1.0], None, float("nan"), 2**70, np.array(["x"]), np.array([None]), object()],
    ids=lambda value: type(value).__name__,
)
def test_other_values_cannot_be_saved(model: llpbench.LLPModel, tmp_path: Path, value: Any) -> None:
    with pytest.raises(MethodError, match=r"mean-ridge: state\(\) gives 'odd'"):
        write_model(tmp_path / "m", model._header, {"odd": value})
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("arrays/0.npy", array_bytes(np.array([{}], object), allow_pickle=True)), "pickled objects are never read"),
        (put("arrays/0.npy", array_bytes(np.zeros(2, [("a", "f8"), ("b", "O")]), allow_pickle=True)), "not numbers"),
        (put("arrays/0.npy", array_bytes(np.array(["text"]))), "not numbers"),
        (put("arrays/0.npy", b"\x80\x04."), "is not a saved model"),
        (put("arrays/0.npy", array_bytes(np.zeros(2), version=(2, 0))), "another version of numpy's format"),
        (lie_about_the_shape, "does not fit its 32 bytes"),
        (put("../../evil.npy", b"x"), "its members are not those its header names ('../../evil.npy')"),
        (put("/etc/evil", b"x"), "its members are not those its header names ('/etc/evil')"),
        (lambda members: members.pop("arrays/0.npy"), "not those its header names ('arrays/0.npy')"),
        (lambda members: members.pop("header.json"), "it has no header.json"),
        (put("header.json", b"{"), "its header cannot be read"),
        (put("header.json", b"[" * 100_000), "its header cannot be read"),
        (put("header.json", b"\xff"), "its header cannot be read"),
        (header({"format": "other"}), "not a saved model of llpbench"),
        (header({"version": 2}), "version 2 of the format; this llpbench reads version 1"),
        (header({"encoder": ...}), "missing required field `encoder`"),
        (header({"seed": "one"}), "Expected `int`, got `str`"),
        (header({"extra": 1}), "unknown field `extra`"),
        (header({"classes": ["one"]}), "do not fit together"),
        (header({"score_kind": "rank"}), "do not fit together"),
        (header({"score_kind": "logit"}), "do not fit together"),
        (header({"method": "supervised"}), "supervised learns from the label of every row"),
        (header({"params": {"gama": 1.0}}), "unknown parameter of mean-ridge: 'gama'"),
        (header({"params": {"choice": 7}}), "value of parameter 'choice'"),
        (header({"scalars": {}}), "its state does not fit mean-ridge (KeyError: 'classes')"),
        (header({"scalars": {"classes": 2}}), "its state does not fit mean-ridge"),
        (header({"scalars": {"classes": 1, "weights_0": 1}}), "its state names 'weights_0' twice"),
        (first_array(lambda w: w[:-1]), "its state does not fit mean-ridge"),
        (first_array(lambda w: w * np.nan), "NaN or infinite"),
        (header({"classes": ["a", "b", "c"]}), "expected (1, 3)"),
    ],
)
def test_a_hostile_file_is_refused(
    model: llpbench.LLPModel, tmp_path: Path, change: Callable[[Members], Any], message: str
) -> None:
    path = rewritten(model, tmp_path / "model", change)
    with pytest.raises(LLPBenchError) as refused:
        llpbench.load(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == [path]  # nothing was unpacked


def test_a_zip_bomb_is_refused_unread(model: llpbench.LLPModel, tmp_path: Path) -> None:
    path = model.save(tmp_path / "model")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arrays/99.npy", bytes(2**24))
    with pytest.raises(ModelFileError, match="compressed; a saved model is not"):
        llpbench.load(path)


def test_members_that_overlap_are_refused(model: llpbench.LLPModel, tmp_path: Path) -> None:
    path = model.save(tmp_path / "model")
    with zipfile.ZipFile(path, "a") as archive:
        big = max(archive.infolist(), key=lambda member: member.file_size)
        for number in range(200, 230):  # thirty names for the same bytes
            copy = zipfile.ZipInfo(f"arrays/{number}.npy")
            copy.header_offset, copy.CRC = big.header_offset, big.CRC
            copy.file_size = copy.compress_size = big.file_size
            archive.filelist.append(copy)
        archive._didModify = True
    with pytest.raises(ModelFileError, match="overlap or repeat"):
        llpbench.load(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"\x80\x04\x95pickle."])
def test_what_is_no_model_is_no_model(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a saved model"):
        llpbench.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"cannot read .*: No such file"):
        llpbench.load(tmp_path / "none")


def test_a_method_that_is_not_installed_is_named(model: llpbench.LLPModel, tmp_path: Path) -> None:
    path = rewritten(model, tmp_path / "model", header({"method": "my-method"}))
    with pytest.raises(UnknownNameError, match=r"'my-method'.*Install the package that brings it"):
        llpbench.load(path)


@given(data=st.data())
@quick
def test_a_damaged_file_is_never_more_than_refused(
    model: llpbench.LLPModel, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = model.save(tmp_path_factory.getbasetemp() / "damaged")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    with contextlib.suppress(ModelFileError):  # any other error fails the test
        read_model(path)
