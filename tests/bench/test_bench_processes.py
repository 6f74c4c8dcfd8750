"""Memory and processor time of a process tree, and what a browser's log is added up to."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fanlight.bench import _pictures
from fanlight.bench._browser import strangers
from fanlight.bench._processes import Peak, cpu_seconds, memory, parse_rollup, tree
from fanlight.bench._server import program
from fanlight.bench._throughput import gauge
from fanlight.errors import FanlightError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

HOLD = "import sys, time; block = bytearray(int(sys.argv[1])); print('up', flush=True); time.sleep(60)"
MIB = 2**20


def test_rollup_sums_are_read_in_bytes() -> None:
    text = "5581-7ffd ---p 00000000 00:00 0  [rollup]\nRss:      2048 kB\nPss:      1024 kB\nPss_Dirty:  8 kB\n"
    assert parse_rollup(text) == (2 * MIB, MIB)


def test_memory_of_a_process_is_at_least_what_it_holds_and_pss_at_most_rss() -> None:
    rss, pss = memory(os.getpid())
    assert 10 * MIB < pss <= rss


def test_a_process_that_is_gone_uses_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert memory(ended.pid) == (0, 0) and cpu_seconds(ended.pid) == 0


def test_a_tree_has_the_children_of_children() -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}, '0'])"
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        found = tree(process.pid)
        assert len(found) == 2 and found[0] == process.pid
        for pid in found[::-1]:
            os.kill(pid, 9)


def test_the_peak_counts_every_process_of_the_tree() -> None:
    size = 80 * MIB
    with subprocess.Popen([sys.executable, "-c", HOLD, str(size)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        with Peak(process.pid, every=0.01) as peak:
            time.sleep(0.1)
        process.kill()
    assert size < peak.pss <= peak.rss < size + 100 * MIB


def test_processor_time_grows_with_work() -> None:
    before, end = cpu_seconds(os.getpid()), time.process_time() + 0.1
    while time.process_time() < end:
        pass
    assert 0.05 <= cpu_seconds(os.getpid()) - before < 2


def test_a_program_that_ends_says_what_it_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such model')"]
    with program(command, 1, tmp_path / "log", {}) as server:
        server.process.wait()
        with pytest.raises(FanlightError, match="no such model"):
            server.until("/readyz")


def test_a_program_does_not_inherit_the_settings_of_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANLIGHT_TRUST", "auto")
    command = [sys.executable, "-c", "import os; print({k for k in os.environ if k.startswith('FANLIGHT_')})"]
    with program(command, 1, tmp_path / "log", {"FANLIGHT_PORT": "1"}) as server:
        server.process.wait()
    assert (tmp_path / "log").read_text() == "{'FANLIGHT_PORT'}\n"


def test_requests_to_other_hosts_are_found_and_pictures_in_the_page_are_not() -> None:
    home = "http://127.0.0.1:8000"
    asked = [
        f"{home}/a.js",
        "blob:http://127.0.0.1:8000/x",
        "data:image/png;base64,",
        "http://127.0.0.1:9/a",
        "https://cdn.example/b",
    ]
    assert strangers(asked, home) == asked[3:]


def test_a_gauge_is_read_by_its_whole_name() -> None:
    text = "# HELP a b\nfanlight_jobs_total 7\nfanlight_jobs 3.0\n"
    assert gauge(text, "fanlight_jobs") == 3


def test_pictures_repeat_by_seed_and_no_two_are_alike() -> None:
    pytest.importorskip("skimage")
    one, same, other = (list(itertools.islice(_pictures.photographs(seed=s), 6)) for s in (1, 1, 2))
    assert one == same
    assert len({blob for _, blob in [*one, *other]}) == 12
