"""The method `bp-field`: a regression on bag means and a Gaussian field label rows for the network of `bp`."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, hookimpl


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bp-field``."""
    from llpbench_methods.bp_field.params import field_params
    from llpbench_methods.nets.params import NETWORK_PRELOAD

    spec = MethodSpec(
        name="bp-field",
        factory="llpbench_methods.bp_field.method:BPField",
        summary="pseudo-labels from a regression on bag means, a Gaussian field and counts, for the network of bp",
        family="belief propagation",
        params=field_params(),
        tasks=("binary", "multiclass"),
        backends=BACKENDS,
        preload=(*NETWORK_PRELOAD, "llpbench_methods.bp_field.method", "llpbench_methods.inference.engines.count"),
        presets=(("no-pairs", "llpbench_methods.bp_field.params:no_pairs"),),
        scores="probability",
        seed_name="bp",
    )
    return [spec]
