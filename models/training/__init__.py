"""From events in windows to trained networks."""
