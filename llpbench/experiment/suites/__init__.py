"""Suites: grids with frozen parameters, a name and a version, which papers can cite.

``file`` reads a suite, ``frozen`` compares its frozen values with the installed defaults, ``plan`` makes its cells, and
``coverage`` counts the results that exist.
"""
