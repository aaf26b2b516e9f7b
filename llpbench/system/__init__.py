"""The machine: atomic writes, file locks, environment variables, cores and memory."""
