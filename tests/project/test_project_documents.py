"""The documents say what is true: settings, commands and places they name exist."""

import re

import pytest

from fanlight.settings import Settings


def read(root, name):
    return (root / name).read_text()


def rows(text):
    """Variable -> (default, meaning) of every table row about a FANLIGHT_* variable."""
    return {m[1]: (m[2], m[3]) for m in re.finditer(r"^\| `(FANLIGHT_\w+)` \| (.*?) \| (.*?) \|$", text, re.M)}


def shown(default):
    if default is None or default == "":
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_documented_with_its_default(root, name):
    documented = rows(read(root, "docs/settings.md"))
    variable = f"FANLIGHT_{name.upper()}"
    assert variable in documented, f"{variable} is missing in docs/settings.md"
    assert documented[variable][0] == shown(Settings.model_fields[name].default)
    assert len(documented[variable][1]) > 15


def test_no_document_names_a_setting_that_is_gone(root):
    known = {f"FANLIGHT_{n.upper()}" for n in Settings.model_fields}
    known |= {"FANLIGHT_URL", "FANLIGHT_TEST_CHROMIUM", "FANLIGHT_PUBLISH"}
    places = [
        "README.md",
        "Makefile",
        "Dockerfile",
        "docker-compose.yml",
        "scripts/tools",
        ".ci/run",
        "deploy/example.env",
    ]
    texts = {p: read(root, p) for p in places} | {str(p): p.read_text() for p in (root / "docs").rglob("*.md")}
    gone = {
        (place, v)
        for place, text in texts.items()
        for v in re.findall(r"FANLIGHT_[A-Z][A-Z_]*[A-Z]", text)
        if v not in known
    }
    assert gone == set()


def code(text):
    """The shell blocks and the inline code of a document, one piece a line."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    return "\n".join([*blocks, *inline])


def test_every_make_command_of_the_readme_is_a_target(root):
    targets = set(re.findall(r"^([a-z-]+):", read(root, "Makefile"), re.M))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", code(read(root, "README.md"))))
    assert {"run", "test"} <= named <= targets


@pytest.mark.parametrize("place", ["README.md", "docs/operations.md", "docs/settings.md"])
def test_every_fanlight_command_of_the_documents_exists(root, place):
    from fanlight.cli import app

    commands = {c.name for c in app.registered_commands} | {g.name for g in app.registered_groups}
    named = set(re.findall(r"(?:^|bin/|[. ])fanlight ([a-z]+)", code(read(root, place)), re.M))
    assert named and named <= commands


def test_links_between_documents_lead_somewhere(root):
    broken = []
    for page in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_the_licence_is_the_one_that_the_package_states(root):
    text = read(root, "LICENSE")
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    assert 'license = "Apache-2.0"' in read(root, "pyproject.toml")


def test_ci_calls_the_same_command_as_a_person(root):
    assert re.search(r"^make test\b", read(root, ".ci/run"), re.M)


def test_decisions_are_numbered_without_gaps_and_complete(root):
    pages = sorted(p for p in (root / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(p.name[:4]) for p in pages] == list(range(len(pages)))
    for page in pages:
        assert [h for h in ("## Context", "## Choice", "## Consequence") if h not in page.read_text()] == [], page.name


def test_architecture_stays_a_map(root):
    assert len(read(root, "ARCHITECTURE.md").splitlines()) <= 150


def test_documents_that_the_code_names_exist(root):
    sources = [p for package in ("backend", "frontend", "models") for p in (root / package).rglob("*.py")]
    named = {(page, p.name) for p in sources for page in re.findall(r"docs/[\w/-]+\.md", p.read_text())}
    assert {(page, where) for page, where in named if not (root / page).exists()} == set()


def python_blocks(root):
    return re.findall(r"```python\n(.*?)```", read(root, "README.md"), re.S)


def test_the_model_file_of_the_readme_passes_the_doctor(root, tmp_path, monkeypatch):
    import torch
    from safetensors.torch import save_file
    from torchvision.models import resnet18

    from fanlight.doctor import model

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    save_file(resnet18(num_classes=2).state_dict(), "weights.safetensors")
    (tmp_path / "mine.py").write_text(python_blocks(root)[0])
    report = model.inspect("mine.py", seconds=10)
    assert report.sound, report.checks
    rows = {row["name"]: row for row in report.details["explainers"]}
    first = {"saliency", "integrated-gradients", "grad-cam", "occlusion", "kernel-shap", "random", "edges"}
    assert all(rows[name]["available"] for name in first)
    assert all(row["available"] or row["reason"] for row in rows.values())
