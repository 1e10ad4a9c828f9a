"""Files before any event is processed: data sets, columns, checks, fingerprints."""
