"""What clusters add to llpbench: the executor ``dask``."""

from __future__ import annotations

from llpbench.contracts.hookspecs import hookimpl
from llpbench.contracts.specs import ExecutorSpec, Param


@hookimpl
def llpbench_executors() -> list[ExecutorSpec]:
    """Cells on a Dask cluster."""
    return [
        ExecutorSpec(
            name="dask",
            factory="llpbench.cluster.dask:DaskExecutor.from_settings",
            summary="a Dask cluster: SLURM, Kubernetes, SSH, or several processes here",
            params=(
                Param("scheduler", "", doc="address or scheduler file of a running cluster; empty starts one here"),
            ),
            requires=("distributed",),
        )
    ]
