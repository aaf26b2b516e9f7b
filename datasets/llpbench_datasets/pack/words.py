"""Texts as features: which of the most frequent words of the training rows a text contains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from llpbench import FloatArray

WORDS = 500
"""Number of words."""
_WORD = re.compile(r"[@#]?\w+(?:'\w+)?")


def words_of(text: str) -> set[str]:
    """The words of a text in lower case, with the sign of a name or topic (``@``, ``#``) that precedes them."""
    return set(_WORD.findall(text.lower()))


def frequent_words(texts: Sequence[str], most: int = WORDS) -> list[str]:
    """The words that most texts contain, most frequent first, and in alphabetical order among equals."""
    counts = Counter(word for text in texts for word in words_of(text))
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def word_features(texts: Sequence[str], words: Sequence[str]) -> FloatArray:
    """(n, words) float32: 1 where a text contains a word."""
    place = {word: j for j, word in enumerate(words)}
    found = np.zeros((len(texts), len(words)), np.float32)
    for row, text in zip(found, texts, strict=True):
        row[[place[word] for word in words_of(text) if word in place]] = 1.0
    return found
