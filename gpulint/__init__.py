"""gpulint: a static linter for GPU anti-patterns in PyTorch code."""

__version__ = "0.1.0"
