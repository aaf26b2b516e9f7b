"""What a plugin author imports: specs, data, protocols, hooks, cells, results, errors. The lowest room."""
