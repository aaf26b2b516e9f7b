"""llpbench: a benchmark suite for learning from label proportions.

The public names are those of ``__init__.pyi``, each imported on first use so that ``import llpbench`` stays light.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
