"""Running cells: jobs, the driver, processes on this machine and elsewhere."""
