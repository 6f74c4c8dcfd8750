"""The quickstart and the three cases of bringing a model do what they say: every command in them runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.processes import BIN

BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.S)
NAMED = re.compile(r"# (\w+\.py)\n")
SERVE = re.compile(r"^FANLIGHT_MODELS=(\S+) fanlight serve$")


def blocks(root: Path, name: str) -> list[tuple[str, str]]:
    return BLOCK.findall((root / "docs" / name).read_text())


def shell(command: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    whole = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **env}
    return subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=whole, capture_output=True, text=True, check=False, timeout=240
    )


def worked(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 0, f"{run.args[-1]}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}"
    return run.stdout


def test_the_quickstart_leads_from_nothing_to_a_link(root, running_server, tmp_path):
    server = running_server()
    given = {"FANLIGHT_URL": server.url, "FANLIGHT_TOKEN": server.token}
    said = ""
    for kind, text in blocks(root, "quickstart.md"):
        if kind == "python":
            (tmp_path / "notebook.py").write_text(
                text.replace("\nrecord  #", "\nprint(record.summary, values.shape)  #")
            )
            said += worked(shell("python notebook.py", tmp_path, given))
            continue
        if text.strip() == "make run":  # what it does to an environment is tested by everything else
            assert re.search(r"^run:", (root / "Makefile").read_text(), re.M)
            continue
        # the address, the token and the environment are those of this test
        kept = [line for line in text.splitlines() if not line.startswith("export ")]
        exported = [
            line.split("=")[0].removeprefix("export ") for line in text.splitlines() if line.startswith("export ")
        ]
        assert set(exported) <= {"PATH", "FANLIGHT_URL", "FANLIGHT_TOKEN"}
        said += worked(shell("\n".join(kept), tmp_path, given))
    assert "saliency" in said, "the models are listed"
    assert said.count(f"{server.url}/e/") == 2, "two explanations were made and say where their pages are"
    assert f"{server.url}/s/" in said, "a link"
    assert "(224, 224)" in said, "the values of a map"
    assert (tmp_path / "cat.html").stat().st_size > 10_000 and list((tmp_path / "result").glob("*.png"))


@pytest.fixture(scope="module")
def cases(root: Path) -> dict[str, list[tuple[str, str]]]:
    text = (root / "docs" / "bring-your-model.md").read_text()
    return {part.split(":")[0]: BLOCK.findall(part) for part in re.split(r"^## Case ", text, flags=re.M)[1:]}


SLOW = pytest.mark.slow  # the doctor runs every method on a network of full size: two minutes each


@pytest.mark.parametrize("case", [pytest.param("1", marks=SLOW), "2", pytest.param("3", marks=SLOW)])
def test_each_case_ends_with_a_server_that_offers_the_model(case, cases, running_server, tmp_path):
    offered = []
    for kind, text in cases[case]:
        if kind == "python":
            name = NAMED.match(text)
            assert name, "a file begins with its name"
            (tmp_path / name[1]).write_text(text)
            continue
        for line in text.splitlines():
            serving = SERVE.match(line)
            if serving is None:
                told = worked(shell(line, tmp_path, {}))
                assert "WRONG" not in told
                if " doctor " in line:
                    assert "saliency" in told
                continue
            server = running_server(models=absolute(serving[1].strip("'"), tmp_path))
            asked = {"FANLIGHT_URL": server.url, "FANLIGHT_TOKEN": server.token}
            offered.append(worked(shell("fanlight models", tmp_path, asked)))
    assert len(offered) == 1 and "saliency" in offered[0]


def absolute(named: str, folder: Path) -> str:
    """The server of a test runs in a folder of its own."""
    return re.sub(r"(?<![\w/.:])(\w+\.(?:py|safetensors|txt)|leaves)\b", lambda m: str(folder / m[1]), named)
