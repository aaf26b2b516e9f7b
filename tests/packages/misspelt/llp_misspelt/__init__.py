"""``llpbench_method`` is not a hook: ``llpbench_methods`` is."""

from llpbench import MethodSpec, hookimpl


@hookimpl
def llpbench_method():
    """Never called, so it must be refused."""
    return [MethodSpec(name="unheard", factory="llp_misspelt:Unheard")]
