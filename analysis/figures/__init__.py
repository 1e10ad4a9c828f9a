"""Stage plot: the figures of a run and the numbers behind them."""
