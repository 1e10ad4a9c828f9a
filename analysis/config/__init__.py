"""The configuration: one YAML file, its models and every message about it."""
