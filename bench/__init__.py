"""How fast Accord is, as ratios of one run; `python -m bench` prints them last."""
