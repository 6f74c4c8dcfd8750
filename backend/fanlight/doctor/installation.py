"""Whether this installation can run a server: packages, device, default model, disk, database, artifact store."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fanlight import bundles
from fanlight.doctor import Check, Report
from fanlight.errors import FanlightError
from fanlight.settings import Settings

LOW_DISK = 0.02  # of the disk; below it /readyz says no
DEVICE = """
import json, torch
cuda = torch.cuda.is_available()
name = torch.cuda.get_device_name(0) if cuda else ""
print(json.dumps({"cuda": cuda, "name": name, "threads": torch.get_num_threads(), "build": torch.version.cuda}))
"""
PARTS = {
    "fastapi": "the server (fanlight[server])",
    "torch": "the computation (fanlight[compute])",
    "torchvision": "the computation (fanlight[compute])",
    "dash": "the pages (fanlight[ui])",
}


def examine(settings: Settings) -> Report:
    """Looks at all that a server with these settings would need; leaves nothing but a probe in the artifact store."""
    checks = [python(), *packages(), device(), default_model(), disk(settings), database(settings), artifacts(settings)]
    return Report("installation", checks)


def python() -> Check:
    supported = (3, 11) <= sys.version_info < (3, 14)
    hint = "" if supported else "Use Python 3.11, 3.12 or 3.13."
    return Check(
        "python", "good" if supported else "bad", f"Python {platform.python_version()} on {platform.system()}.", hint
    )


def packages() -> list[Check]:
    found = []
    for name, use in PARTS.items():
        try:
            found.append(Check(name, "good", f"{name} {version(name)}."))
        except PackageNotFoundError:
            found.append(Check(name, "bad", f"{name} is not installed; {use} needs it.", "pip install 'fanlight[all]'"))
    return found


def device() -> Check:
    """In a process of its own: importing torch takes seconds, and a broken driver can end the process."""
    run = subprocess.run([sys.executable, "-c", DEVICE], capture_output=True, text=True, check=False)
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.returncode}"]
        return Check("device", "bad", f"torch cannot be imported: {last[0]}")
    found = json.loads(run.stdout.splitlines()[-1])
    if found["cuda"]:
        return Check("device", "good", f"CUDA: {found['name']}.")
    why = "no CUDA device is visible" if found["build"] else "this torch is built without CUDA"
    return Check("device", "good", f"CPU, {found['threads']} threads; {why}.")


def default_model() -> Check:
    names = [folder.name for folder in bundles.installed()]
    if bundles.DEFAULT in names:
        return Check("model", "good", f"Installed: {', '.join(names)}.")
    return Check(
        "model", "warning", "The default model is not installed.", f"fanlight models install {bundles.DEFAULT}"
    )


def disk(settings: Settings) -> Check:
    folder = settings.data_dir.resolve()
    there = next(p for p in (folder, *folder.parents) if p.exists())
    total, _, free = shutil.disk_usage(there)
    says = f"{free / 2**30:.1f} GiB free for {folder}."
    if free < LOW_DISK * total:
        return Check("disk", "bad", says, f"A server needs {LOW_DISK:.0%} of the disk free.")
    return Check("disk", "good", says)


def database(settings: Settings) -> Check:
    try:
        from sqlalchemy import create_engine, text
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import SQLAlchemyError
    except ModuleNotFoundError:
        return Check("database", "bad", "SQLAlchemy is not installed.", "pip install 'fanlight[all]'")
    try:
        url = make_url(settings.database)
        shown = url.render_as_string(hide_password=True)
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
            return Check("database", "good", f"{shown} will be made at the first start.")
        engine = create_engine(url)
        with engine.connect() as connection:
            connection.execute(text("select 1"))
        engine.dispose()
    except (SQLAlchemyError, ModuleNotFoundError) as e:
        return Check(
            "database",
            "bad",
            f"The database cannot be reached: {str(e).splitlines()[0]}",
            "FANLIGHT_DATABASE_URL names it.",
        )
    return Check("database", "good", f"{shown} answers.")


def artifacts(settings: Settings) -> Check:
    if "://" not in settings.artifacts and not Path(settings.artifacts).exists():
        return Check("artifacts", "good", f"{settings.artifacts} will be made at the first start.")
    try:
        from fanlight.blobs import Blobs

        Blobs(settings.artifacts).probe()
    except ModuleNotFoundError:
        return Check("artifacts", "bad", "obstore is not installed.", "pip install 'fanlight[all]'")
    except (FanlightError, OSError) as e:
        return Check(
            "artifacts",
            "bad",
            f"Artifacts cannot be written to {settings.artifacts}: {e}",
            "FANLIGHT_ARTIFACTS_URL names the place.",
        )
    return Check("artifacts", "good", f"{settings.artifacts} can be written.")
