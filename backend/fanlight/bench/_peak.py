"""The peak of memory of one job of `fanlight bench attribution` beyond what a forward pass left, in a process of its own.

`python -m fanlight.bench._peak JOB SIDE` prints MB (10^6 bytes).
"""

from __future__ import annotations

import subprocess
import sys

from fanlight.errors import FanlightError


def measured(name: str, side: str) -> float:
    """MB; runs the job in a fresh process, so that no job profits from memory that another one has taken."""
    command = [sys.executable, "-m", "fanlight.bench._peak", name, side]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise FanlightError(f"The job {name} by {side} failed: {run.stderr.strip()[-300:]}", code="job_failed")
    return float(run.stdout.strip().splitlines()[-1])


def main(name: str, side: str) -> None:
    import torch

    from fanlight.bench import _jobs
    from fanlight.doctor.costs import Peak

    bench = _jobs.prepared()
    _jobs.forward(bench)()
    _ = bench.model.held  # found out once per model, not per map
    act = _jobs.job(bench, name, side)
    peak = Peak(torch.device("cpu"))
    act()
    found = peak.mib()
    if found is None:
        raise SystemExit("The system does not tell the peak of memory.")
    sys.stdout.write(f"{found * 2**20 / 1e6:.1f}\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
