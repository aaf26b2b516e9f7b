"""``python -m llpbench``."""

from llpbench.cli import main

if __name__ == "__main__":
    main()
