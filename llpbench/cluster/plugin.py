"""What work on several machines adds to llpbench: the executor ``dask`` and the verb ``results``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl
from llpbench.contracts.specs import ExecutorSpec, Param

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_executors() -> list[ExecutorSpec]:
    """Cells on a Dask cluster."""
    return [
        ExecutorSpec(
            name="dask",
            factory="llpbench.cluster.dask:DaskExecutor",
            summary="a Dask cluster: SLURM, Kubernetes, SSH, or several processes here",
            params=(
                Param("scheduler", "", doc="address or scheduler file of a running cluster; empty starts one here"),
            ),
            requires=("distributed",),
        )
    ]


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``results``: list and merge results folders."""
    from llpbench.cluster.verb import results

    group.add_command(results)
