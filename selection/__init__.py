"""Physics of events: arrays in, arrays out."""
