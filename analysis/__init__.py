"""The wiring: configuration, datasets, processors, run folder, workflow, command line."""
