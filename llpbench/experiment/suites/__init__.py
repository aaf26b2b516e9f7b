"""Suites: grids that are frozen in a file under a name and a version, so that papers can cite them.

``file`` reads one, ``frozen`` compares what it froze with what is installed, ``plan`` makes cells of it, ``coverage``
says which of them there are results for.
"""
