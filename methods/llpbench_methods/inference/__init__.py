"""Belief propagation on the Gibbs law of labels: similarity graph, model, engines, diagnostics.

A library that no method is part of; `bp` and `bp-count` use it. The public names are those of ``__init__.pyi``, each
imported on first use, so that importing the package costs nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
