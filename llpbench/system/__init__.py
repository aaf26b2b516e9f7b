"""The machine below: whole files, locks between processes, cores and memory."""
