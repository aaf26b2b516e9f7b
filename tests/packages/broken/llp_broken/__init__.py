"""Imports a module that nobody has."""

import a_module_that_nobody_has  # noqa: F401

from llpbench import MethodSpec, hookimpl


@hookimpl
def llpbench_methods():
    """Never reached."""
    return [MethodSpec(name="never", factory="llp_broken:Never")]
