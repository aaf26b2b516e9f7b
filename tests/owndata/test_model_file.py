"""Saved models: what is written is read back, and a hostile file is refused with a sentence."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
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
from safetensors.numpy import load, save

import llpbench
from llpbench.contracts.errors import LLPBenchError, MethodError, UnknownNameError
from llpbench.owndata.model_file import Header, ModelFileError, read_model, write_model

Tensors = dict[str, np.ndarray]
Head = dict[str, Any]


@pytest.fixture(scope="module")
def model() -> llpbench.LLPModel:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    bag = np.arange(200) % 20
    return llpbench.fit(X, bag, np.bincount(bag, X[:, 0] > 0), method="mean-ridge", classes=["no", "yes"])


def raw(head: Any, data: bytes) -> bytes:
    """A file in the format safetensors, whatever it says."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + data


def parts(path: Path) -> tuple[Head, bytes]:
    """The head of a file and its data."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


Change = Callable[[Head, bytes], bytes]


def facts(*path: Any) -> Change:
    """Change a value among the facts: names down to it, and the new value."""

    def apply(head: Head, data: bytes) -> bytes:
        entries = json.loads(head["__metadata__"]["llpbench"])
        *names, last, value = path
        at = entries["facts"]
        for name in names:
            at = at[name]
        at[last] = value
        return raw({**head, "__metadata__": {"llpbench": json.dumps(entries)}}, data)

    return apply


def header(change: dict[str, Any] | str) -> Change:
    """Change entries of the header (``...`` takes one out), or its whole text."""

    def apply(head: Head, data: bytes) -> bytes:
        text = change
        if isinstance(change, dict):
            entries = {**json.loads(head["__metadata__"]["llpbench"]), **change}
            text = json.dumps({k: v for k, v in entries.items() if v is not ...})
        return raw({**head, "__metadata__": {"llpbench": text}}, data)

    return apply


def tensors(change: Callable[[Tensors], Any]) -> Change:
    """Change the arrays, and write a file that is sound in itself."""

    def apply(head: Head, data: bytes) -> bytes:
        arrays = load(raw(head, data))
        change(arrays)
        return save(arrays, head["__metadata__"])

    return apply


def weights(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return tensors(lambda arrays: arrays.__setitem__("weights_0", np.ascontiguousarray(change(arrays["weights_0"]))))


def tensor(**change: Any) -> Change:
    """Change what the head says of the weights."""
    return lambda head, data: raw({**head, "weights_0": {**head["weights_0"], **change}}, data)


def test_saved_model_is_loaded_unchanged(model: llpbench.LLPModel, tmp_path: Path) -> None:
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
def test_states_round_trip(
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
    [
        {"a": 1},
        [1.0],
        None,
        float("nan"),
        2**70,
        np.array(["x"]),
        np.array([None]),
        np.zeros(2, np.longdouble),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_unsupported_state_values_are_rejected(model: llpbench.LLPModel, tmp_path: Path, value: Any) -> None:
    with pytest.raises(MethodError, match=r"mean-ridge: state\(\) gives 'odd'"):
        write_model(tmp_path / "m", model._header, {"odd": value})
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head, data: pickle.dumps({"weights_0": head}), "it is not a model file"),
        (tensor(dtype="O"), "it is not a model file"),
        (tensor(dtype=["F64", "O"]), "it is not a model file"),
        (tensors(lambda arrays: arrays.__setitem__("weights_0", np.zeros(2, np.complex64))), "expected real numbers"),
        (tensor(dtype="BF16", shape=[4, 3]), "expected real numbers"),
        (tensor(dtype="F4"), "it is not a model file"),
        (tensor(shape=[99]), "it is not a model file"),
        (tensor(shape=[2**62, 2**62]), "it is not a model file"),
        (tensor(shape=[-1]), "it is not a model file"),
        (tensor(data_offsets=[0, 2**60]), "it is not a model file"),
        (lambda head, data: raw(head, data[:-1]), "it is not a model file"),
        (lambda head, data: raw(head, data + b"x"), "it is not a model file"),
        (lambda head, data: (2**63).to_bytes(8, "little") + raw(head, data)[8:], "it is not a model file"),
        (
            tensors(lambda arrays: arrays.__setitem__("../../evil", np.zeros(1))),
            "its arrays do not match its header ('../../evil')",
        ),
        (
            tensors(lambda arrays: arrays.__setitem__("/etc/evil", np.zeros(1))),
            "its arrays do not match its header ('/etc/evil')",
        ),
        (tensors(lambda arrays: arrays.pop("weights_0")), "do not match its header ('weights_0')"),
        (lambda head, data: raw({k: v for k, v in head.items() if k != "__metadata__"}, data), "not a model file of"),
        (lambda head, data: raw({**head, "__metadata__": {"other": "x"}}, data), "not a model file of llpbench"),
        (lambda head, data: raw(b"[" * 100_000, data), "it is not a model file"),
        (lambda head, data: raw(b"\xff", data), "it is not a model file"),
        (header("{"), "its header cannot be read"),
        (header("[" * 100_000), "its header cannot be read"),
        (header({"format": "other"}), "not a model file of llpbench"),
        (header({"version": 4}), "version 4 of the format; this version of llpbench reads versions 2 and 3"),
        (header({"encoder": ...}), "missing required field `encoder`"),
        (header({"seed": "one"}), "Expected `int`, got `str`"),
        (header({"extra": 1}), "unknown field `extra`"),
        (header({"classes": ["one"]}), "are inconsistent"),
        (header({"score_kind": "rank"}), "are inconsistent"),
        (header({"score_kind": "logit"}), "are inconsistent"),
        (header({"method": "supervised"}), "supervised needs the label of every row"),
        (header({"params": {"gama": 1.0}}), "unknown parameter of mean-ridge: 'gama'"),
        (header({"params": {"choice": 7}}), "value of parameter 'choice'"),
        (header({"scalars": {}}), "its state does not match mean-ridge (KeyError: 'classes')"),
        (header({"scalars": {"classes": 2}}), "its state does not match mean-ridge"),
        (header({"scalars": {"classes": 1, "weights_0": 1}}), "its state contains 'weights_0' twice"),
        (header({"arrays": {"weights_0": "K"}}), "Invalid enum value 'K'"),
        (weights(lambda w: w[:-1]), "its state does not match mean-ridge"),
        (weights(lambda w: w * np.nan), "NaN or infinite"),
        (header({"classes": ["a", "b", "c"]}), "are inconsistent"),
        (header({"classes": ["a", "b", "c"], "shrinkage": None, "facts": None}), "expected scores of shape (1, 3)"),
        (header({"shrinkage": {"slope": 1.5, "shift": [0.0, 0.0]}}), "are inconsistent"),
        (header({"shrinkage": {"slope": 0.5, "shift": [0.0]}}), "are inconsistent"),
        (facts("points", []), "are inconsistent"),
        (facts("card", "proportion_sd", []), "are inconsistent"),
        (header({"shrinkage": {"slope": 0.5}}), "missing required field `shift`"),
    ],
)
def test_tampered_file_is_rejected(model: llpbench.LLPModel, tmp_path: Path, change: Change, message: str) -> None:
    path = model.save(tmp_path / "model")
    path.write_bytes(change(*parts(path)))
    with pytest.raises(LLPBenchError) as refused:
        llpbench.load(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == [path]  # nothing was unpacked


def test_untampered_model_file_is_accepted(model: llpbench.LLPModel, tmp_path: Path) -> None:
    """The changes above, with nothing changed: what is refused there is refused for the change."""
    path = model.save(tmp_path / "model")
    for change in (header({}), tensors(lambda _: None), tensor(), weights(lambda w: w)):
        path.write_bytes(change(*parts(path)))
        llpbench.load(path)


def test_zip_bomb_is_rejected_unread(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b"{}")
        archive.writestr("arrays/99.npy", bytes(2**24))
    with pytest.raises(ModelFileError, match=r"version 1 of the format .* reads versions 2 and 3"):
        llpbench.load(path)


def test_overlapping_arrays_are_rejected(model: llpbench.LLPModel, tmp_path: Path) -> None:
    path = model.save(tmp_path / "model")
    head, data = parts(path)
    copies = {f"copy {number}": head["weights_0"] for number in range(30)}  # thirty names for the same bytes
    path.write_bytes(raw({**head, **copies}, data))
    with pytest.raises(ModelFileError, match="is not a model file"):
        llpbench.load(path)


def test_arrays_keep_their_memory_order(model: llpbench.LLPModel, tmp_path: Path) -> None:
    """Sums run in another order over a transposed array, and would differ in their last bits."""
    values = np.arange(24.0).reshape(4, 6)
    arrays = {"rows": values, "columns": np.asfortranarray(values), "strided": values[::2, 1::2], "one": values[0]}
    write_model(tmp_path / "m", copy.copy(model._header), arrays)
    _, state = read_model(tmp_path / "m")
    for name, array in arrays.items():
        found = np.asarray(state[name])
        assert np.array_equal(found, array)
        assert found.flags.fnc == array.flags.fnc
        assert found.flags.writeable


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"\x80\x04\x95pickle."])
def test_other_files_are_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ModelFileError, match="is not a model file"):
        llpbench.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"cannot read .*: No such file"):
        llpbench.load(tmp_path / "none")


def test_load_names_a_missing_method(model: llpbench.LLPModel, tmp_path: Path) -> None:
    path = model.save(tmp_path / "model")
    path.write_bytes(header({"method": "my-method"})(*parts(path)))
    with pytest.raises(UnknownNameError, match=r"'my-method'.*Install the package that provides it"):
        llpbench.load(path)


@given(data=st.data())
@quick
def test_damaged_file_raises_only_model_file_error(
    model: llpbench.LLPModel, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = model.save(tmp_path_factory.getbasetemp() / "damaged")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    with contextlib.suppress(ModelFileError):  # any other error fails the test
        read_model(path)
