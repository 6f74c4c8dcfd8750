"""Rules of the whole code base that a machine can check."""

import json
import subprocess
import sys
from pathlib import Path

PACKAGES = ("backend/fanlight", "frontend/fanlight_ui", "models/fanlight_models", "models/examples", "tests", "scripts")
LIMIT = 400


def test_no_module_is_longer_than_400_lines(root):
    modules = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    assert len(modules) > 50
    lengths = {str(path.relative_to(root)): len(path.read_text().splitlines()) for path in modules}
    assert {name: n for name, n in lengths.items() if n > LIMIT} == {}


def test_imports_go_in_one_direction(root):
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run([linter, "--no-cache"], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-500:]


def loaded(imports, *modules):
    """Which of `modules` a fresh interpreter has after `import ...`."""
    code = f"import json, sys, {imports}; print(json.dumps([m for m in {modules} if m in sys.modules]))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_client_pages_shell_and_declarations_load_without_torch():
    light = "fanlight, fanlight_ui, fanlight.cli, fanlight.drawing, fanlight.doctor, fanlight.explainers.registry as r"
    assert loaded(f"{light}; assert len(r.registry()) >= 7", "torch", "sqlalchemy") == []


def test_the_client_package_loads_without_dash_and_server():
    assert loaded("fanlight", "torch", "sqlalchemy", "dash", "fastapi") == []
