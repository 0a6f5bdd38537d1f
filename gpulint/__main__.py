"""``python -m gpulint``."""

from __future__ import annotations

from gpulint.cli import main

if __name__ == "__main__":
    main()
