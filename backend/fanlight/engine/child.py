"""The compute worker as a child process: reads work as JSON lines from its input, writes events as JSON lines to its output.

The main thread owns the device; live edits are answered beside it, by one thread with one core. When the input ends (the server is gone,
however it went) the process ends at once: whatever it was doing is done again by whoever claims the job next. Signals that ask a whole
group of processes to end are the server's to answer.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import orjson

from fanlight import collector
from fanlight.engine.base import Work
from fanlight.engine.core import Core
from fanlight.errors import FanlightError

BEAT = 0.5  # seconds between signs of life
PR_SET_PDEATHSIG = 1
POISONED = 70  # exit code


def bind_to_parent() -> None:
    """Ends with the server even where no thread of ours gets to read the end of the input (Linux)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    bind_to_parent()
    collector.begin()
    # Models and libraries may print: what was the output becomes ours alone, theirs goes to the log.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        with lock:
            answers.write(orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")

    config = orjson.loads(sys.stdin.buffer.readline())
    try:
        import torch

        from fanlight.engine.execute import Config, Execution

        execution = Execution(Config(**{**config, "explainers": tuple(config["explainers"])}))
    except BaseException as e:
        send({"broken": f"{type(e).__name__}: {e}"})
        raise

    def give_up(why: str) -> None:
        """The context of the device is lost for good: only another process gets a new one."""
        send({"dying": why})
        os._exit(POISONED)

    core = Core(
        execution,
        lambda event: send({"event": [event.job, event.kind, event.data]}),
        turns=lambda jobs: send({"turn": jobs}),
        fatal=give_up,
    )

    def health() -> dict[str, Any]:
        return {
            "device": str(execution.device),
            "waiting": len(core.waiting),
            "active": sum(len(b.entries) for b in core.active),
            "steps": core.steps,
            "longest_step": core.longest_step,
            "throughput": core.finished_cost / core.spent if core.spent else 0.0,
        }

    def answered(number: int, found: Mapping[str, Any] | FanlightError) -> None:
        if isinstance(found, FanlightError):
            send({"answered": number, **found.body(), "status": found.status})
        else:
            send({"answered": number, "value": dict(found)})

    def edit(number: int, work: Work) -> None:
        try:
            answered(number, execution.edit(work))
        except FanlightError as e:
            answered(number, e)

    live = ThreadPoolExecutor(1, thread_name_prefix="live", initializer=torch.set_num_threads, initargs=(1,))

    decoding = ThreadPoolExecutor(1, thread_name_prefix="decoding", initializer=torch.set_num_threads, initargs=(1,))

    def obey(message: dict[str, Any]) -> None:
        if "work" in message:
            work = Work.of(message["work"])
            core.submit(work)
            execution.ahead(work, decoding)
        elif "cancel" in message:
            core.cancel(message["cancel"])
        elif "describe" in message:
            core.describe(message["describe"], partial(answered, message["number"]))
        elif "edit" in message:
            live.submit(edit, message["number"], Work.of(message["edit"]))

    def read() -> None:
        try:
            for line in sys.stdin.buffer:
                obey(orjson.loads(line))
        except Exception:  # nothing more would be heard: better no worker than a deaf one
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def beat() -> None:
        while True:
            send({"health": health()})
            time.sleep(BEAT)

    collector.settle()
    send({"ready": health()})
    threading.Thread(target=read, daemon=True).start()
    threading.Thread(target=beat, daemon=True).start()
    core.run()


if __name__ == "__main__":
    main()
