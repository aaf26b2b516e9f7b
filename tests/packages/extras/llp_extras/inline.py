"""An executor: jobs in, outcomes out. This one has no process of its own for a cell, so it watches nothing."""

from llpbench import Outcome
from llpbench.execution.worker import run_job


class InlineExecutor:
    """Runs a cell as soon as it is asked for."""

    def __init__(self, settings, greeting=""):
        self.greeting, self.done = greeting, []

    @property
    def slots(self):
        """One cell at a time."""
        return 0 if self.done else 1

    def submit(self, job):
        """Run the cell; its result is the file it wrote."""
        if self.greeting:
            print(self.greeting, flush=True)
        result = run_job(job)
        self.done.append(Outcome(job, "finished", seconds=result.wall_seconds))

    def wait(self, seconds):
        """The cell that just ran."""
        done, self.done = self.done, []
        return done

    def close(self):
        """Nothing to stop."""
