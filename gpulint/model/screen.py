"""A cheap look at the text of a file: could any rule have something to say about it?"""

from __future__ import annotations

import re

_RELEVANT = re.compile(r"\btorch\b|\blightning\b|\btransformers\b|\baccelerate\b|\bignite\b|\bapex\b")


def relevant(text: str) -> bool:
    return _RELEVANT.search(text) is not None
