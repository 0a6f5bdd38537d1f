"""Run a command and say how long it took and how much memory each of its processes reached."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1 << 20
PROC = Path("/proc")


@dataclass(frozen=True)
class Run:
    command: tuple[str, ...]
    returncode: int  # 124: it ran into the time limit
    seconds: float
    cpu_seconds: float  # of all its processes
    stdout: str
    stderr: str
    peaks: tuple[int, ...] = field(default=())  # bytes, one per process, largest first

    @property
    def peak_mib(self) -> float:
        """The largest process's peak resident memory."""
        return max(self.peaks, default=0) / MIB


def measure(command: Sequence[str | Path], *, limit: float = 600.0, watch: bool = True, keep: bool = True) -> Run:
    """Run ``command``; with ``watch`` follow its children's memory too; ``keep`` its output."""
    words = tuple(str(word) for word in command)
    sink = subprocess.PIPE if keep else subprocess.DEVNULL
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, start_new_session=True)
    watcher = Watcher(process.pid) if watch else None
    outputs = [Reader(stream) for stream in (process.stdout, process.stderr) if stream]
    late = threading.Event()

    def stop() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)  # its workers too

    timer = threading.Timer(limit, stop)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    texts = [reader.text() for reader in outputs] or ["", ""]
    peaks = watcher.stop() if watcher else {}
    # ru_maxrss is never below what *this* process used when it forked, so it is second best.
    peaks.setdefault(process.pid, usage.ru_maxrss * 1024)
    return Run(
        command=words,
        returncode=124 if late.is_set() else process.returncode,
        seconds=seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        stdout=texts[0],
        stderr=texts[1],
        peaks=tuple(sorted(peaks.values(), reverse=True)),
    )


class Reader(threading.Thread):
    """Drains a pipe, so that the child never waits for us."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream, self.data = stream, b""
        self.start()

    def run(self) -> None:
        self.data = self.stream.read()

    def text(self) -> str:
        self.join(timeout=5)
        return self.data.decode("utf-8", "replace")


class Watcher(threading.Thread):
    """Samples VmHWM, which is itself a high-water mark: a late sample loses nothing before it."""

    def __init__(self, pid: int, interval: float = 0.01) -> None:
        super().__init__(daemon=True)
        self.pid, self.interval = pid, interval
        self.peaks: dict[int, int] = {}
        self.done = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.done.wait(self.interval):
            for pid in self.family():
                if peak := high_water(pid):
                    self.peaks[pid] = max(self.peaks.get(pid, 0), peak)

    def family(self) -> list[int]:
        pids = [self.pid]
        for pid in pids:  # grows while it is walked
            pids += children(pid)
        return pids

    def stop(self) -> dict[int, int]:
        self.done.set()
        self.join()
        return self.peaks


def children(pid: int) -> list[int]:
    try:
        threads = list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []  # it has ended meanwhile
    return [int(child) for thread in threads for child in read(thread / "children").split()]


def high_water(pid: int) -> int:
    for line in read(PROC / str(pid) / "status").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def read(path: Path) -> str:
    """A file under /proc; empty when its process has ended meanwhile."""
    try:
        return path.read_text()
    except OSError:
        return ""
