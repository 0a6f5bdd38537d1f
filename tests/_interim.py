"""Stand-ins until gpulint.source and gpulint.fix exist. To be deleted."""
from __future__ import annotations
import bisect, re
from pathlib import Path
from types import SimpleNamespace

class Source:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
        self.starts = [0]
        for line in self.lines: self.starts.append(self.starts[-1] + len(line))
    def offset(self, line, col):
        l = self.lines[line - 1] if line <= len(self.lines) else ""
        return self.starts[line - 1] + len(l.encode()[:col].decode())
    def position(self, off):
        i = bisect.bisect_right(self.starts, off)
        return i, off - self.starts[i - 1] + 1

def from_text(path, text): return Source(path, text)

def apply_fixes(text, findings, unsafe):
    from gpulint.finding import Applicability
    taken, applied = [], []
    for f in findings:
        if f.fix is None or not f.fix.edits or (f.fix.applicability is Applicability.UNSAFE and not unsafe): continue
        if any(a.start < e.end and e.start < a.end or a.start == e.start for a in taken for e in f.fix.edits): continue
        taken += f.fix.edits; applied.append(f)
    for e in sorted(taken, reverse=True): text = text[:e.start] + e.text + text[e.end:]
    return text, applied

def fix_to_fixpoint(source, relint, unsafe):
    text = source.text; rounds = 0; count = 0
    while rounds < 10:
        new, applied = apply_fixes(text, relint(from_text(source.path, text)), unsafe)
        if not applied: break
        text = new; rounds += 1; count += len(applied)
    return SimpleNamespace(text=text, rounds=rounds, converged=rounds < 10)
