"""Criteo display advertising: is an advertisement clicked?"""

from __future__ import annotations

from llpbench import DataFile, DatasetSpec, Param, hookimpl

FULL = ("criteo/train.txt", "criteo/train.txt.gz")
"""The file of the Kaggle challenge, under the names it is looked for; no source gives it freely."""
SAMPLE = DataFile(
    "criteo/train_12768.txt.gz", "9fc82b2b1fc831d55753cc4b55fb6540a397208fb9f2efb8c416ea71f8ad054a", 1_112_181
)
REDUCED = DataFile(
    "criteo/train_45840_c7.txt.gz", "a773cf8220353ae835dc756902aea8c39aa3e63ff7b1b0cd06b91ee4690e9eda", 831_318
)

CRITEO = DatasetSpec(
    name="criteo",
    factory="llpbench_datasets.criteo.load:load",
    summary="Criteo display advertising (Kaggle 2014): clicks, 13 integers and 26 categories, 26 % positive",
    params=(
        Param(
            "features",
            "met",
            choices=("met", "hashed", "columns"),
            doc="masked self-supervised embedding (minutes, once), hashes and a random projection (seconds), or the 39 "
            "columns themselves, for schemes that group by them: 13 numbers and a 0/1 feature for each bucket",
        ),
        Param(
            "file",
            "",
            names_file=True,
            doc="a file in the folder criteo of the data folder, or an absolute path; found by default",
        ),
        Param(
            "rows",
            1_450_000,
            low=20,
            high=50_000_000,
            log=True,
            doc="number of rows drawn from the file; all if it has fewer",
        ),
        Param("dim", 64, low=4, high=512, log=True, doc="dimension of the embedding"),
        Param("buckets", 128, low=8, high=65_536, log=True, doc="number of hash buckets for the values of a category"),
        Param("mask", 0.7, low=0.0, high=0.95, doc="met: share of columns masked in training"),
        Param(
            "steps",
            "auto",
            low=1,
            high=1_000_000,
            kind="int",
            choices=("auto",),
            doc="met: training steps of 128 rows; auto is six passes over the training rows, at most 4000 steps",
        ),
    ),
    columns=39,
    balance=(0.7438, 0.2562),
    split="random, disjoint: 1,000,000 / 200,000 / 250,000 rows; the same shares of what a smaller file holds",
    files=(SAMPLE, REDUCED),
    licence="Criteo's own terms (research use)",
    homepage="https://www.kaggle.com/c/criteo-display-ad-challenge",
    citation="Criteo Labs (2014). Display Advertising Challenge. Kaggle",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``criteo``."""
    return [CRITEO]
