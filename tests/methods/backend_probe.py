"""Computes the figures of one backend, chosen by ``KERAS_BACKEND``, and writes them as JSON (see backends.py).

Keras fixes its backend at import, so this runs in a process of its own: ``backend_probe.py OUT [PART ...]``.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import agg_emb_probe
import losses_probe
import nets_probe

if __name__ == "__main__":
    warnings.simplefilter("error")
    parts = {
        f"{module.__name__.removesuffix('_probe')}.{part.__name__}": part
        for module in (nets_probe, losses_probe, agg_emb_probe)
        for part in module.parts()
    }
    chosen = sys.argv[2:] or list(parts)
    Path(sys.argv[1]).write_text(json.dumps({name: parts[name]() for name in chosen}))
