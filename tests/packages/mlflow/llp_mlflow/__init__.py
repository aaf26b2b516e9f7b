"""Every finished cell as an MLflow run, in the store that ``MLFLOW_TRACKING_URI`` names."""

from functools import cache

from llpbench import hookimpl


@cache
def _tracker():
    from mlflow import MlflowClient  # heavy: imported with the first cell, not with the plugin

    client = MlflowClient()
    known = client.get_experiment_by_name("llpbench")
    return client, known.experiment_id if known else client.create_experiment("llpbench")


@hookimpl
def llpbench_cell_finished(cell, result):
    """Log the cell's axes and parameters, its metrics by selection rule, its seconds and how it ended."""
    client, experiment = _tracker()
    run = client.create_run(experiment, run_name=f"{result.method_name} {cell.dataset} {cell.bag_size} {cell.seed}")
    axes = {"method": cell.method, "dataset": cell.dataset, "bag_size": cell.bag_size, "seed": cell.seed}
    for name, value in {**cell.params, **axes, "noise": cell.noise}.items():
        client.log_param(run.info.run_id, name, value)
    numbers = {f"{rule}.{name}": v for rule, chosen in result.selected.items() for name, v in chosen.metrics.items()}
    for name, value in {**numbers, "fit_seconds": result.fit_seconds}.items():
        if value is not None:
            client.log_metric(run.info.run_id, name, value)
    for name, text in {"id": result.id, "status": result.status, "reason": result.reason}.items():
        client.set_tag(run.info.run_id, f"llpbench.{name}", text)
    client.set_terminated(run.info.run_id, "FINISHED" if result.status in ("ok", "skipped") else "FAILED")
