"""Models of diffusers by their name on the hub: names, what is fetched of a repository, the pinned commit, and what is said without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fanlight.adapters import hub, loader, snapshots
from fanlight.adapters.sources import hub_name
from support.hub_cache import COMMITS, constants, held, offline
from support.pipelines import saved
from support.small_hub import COMMIT, serving

huggingface_hub = pytest.importorskip("huggingface_hub")
NAME = "acme/tiny-sd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("pipeline"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    offline(monkeypatch, tmp_path / "hub")
    return tmp_path / "hub"


def load(what: str) -> Any:
    return loader.load(loader.source(f"diffusers:{what}"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("acme/tiny-sd", ("acme/tiny-sd", None)),
        ("acme/tiny.sd_1@refs/pr/3", ("acme/tiny.sd_1", "refs/pr/3")),
        ("acme/tiny-sd@v1.0", ("acme/tiny-sd", "v1.0")),
        *((t, None) for t in ("tiny-sd", "/acme/tiny", "./tiny", "../a/b", "a/b/c", "a/b@", "a/b@../../x", "~/tiny")),
    ],
)
def test_what_a_name_on_the_hub_is(text: str, name: Any) -> None:
    assert hub_name(text) == name


def test_a_folder_that_is_here_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert loader.named("diffusers:acme/tiny-sd@v1") == ("tiny-sd", {"diffusers": "acme/tiny-sd@v1"})
    assert loader.named("mine=diffusers:acme/tiny-sd") == ("mine", {"diffusers": "acme/tiny-sd"})
    (tmp_path / "acme/tiny-sd").mkdir(parents=True)
    assert loader.source("diffusers:acme/tiny-sd") == {"diffusers": str(tmp_path / "acme/tiny-sd")}
    assert loader.source("transformers:acme/other") == {"transformers": str(tmp_path / "acme/other")}


def test_only_texts_and_safetensors_of_the_parts_that_are_read_are_fetched() -> None:
    wanted = [
        "model_index.json", "scheduler/scheduler_config.json", "tokenizer/merges.txt", "tokenizer_2/tokenizer.json",
        "text_encoder_2/model-00001-of-00002.safetensors", "text_encoder_2/model.safetensors.index.json",
        "transformer/diffusion_pytorch_model.safetensors", "unet/config.json", "vae/diffusion_pytorch_model.safetensors",
    ]  # fmt: skip
    others = [
        "README.md", "flux1-dev.safetensors", "unet/diffusion_pytorch_model.bin", "unet/diffusion_pytorch_model.fp16.safetensors",
        "unet/model.py", "text_encoder/pytorch_model.bin", "text_encoder/flax_model.msgpack", "text_encoder/model.pt", "vae/weights.ckpt",
        "safety_checker/model.safetensors", "unet/diffusion_pytorch_model.non_ema.safetensors", "tokenizer/code.pkl",
    ]  # fmt: skip
    found = huggingface_hub.utils.filter_repo_objects(
        [*wanted, *others], allow_patterns=snapshots.WANTED, ignore_patterns=snapshots.UNWANTED
    )
    assert list(found) == wanted


def test_the_commit_is_part_of_what_the_model_is(cache: Path, folder: Path) -> None:
    held(cache, NAME, folder)
    model = load(NAME)
    assert model.name == "tiny-sd" and "“acme/tiny-sd” of the hub at commit aaaaaaaaaaaa" in model.description
    assert model.pinned == {"diffusers": f"{NAME}@{COMMITS[0]}"} and model.versions == {NAME: COMMITS[0]}
    assert loader.describe({"diffusers": NAME})["source"] == model.pinned
    held(cache, NAME, folder, COMMITS[1])  # main moves on
    again, moved = load(f"{NAME}@{COMMITS[0]}"), load(NAME)
    assert again.digest == model.digest and moved.versions == {NAME: COMMITS[1]}
    assert len({model.digest, moved.digest, load(str(folder)).digest}) == 3
    assert load(str(folder)).pinned is None and load(str(folder)).versions == {}


def test_what_else_lies_in_the_cache_is_nothing_of_the_model(cache: Path, folder: Path) -> None:
    place = held(cache, NAME, folder)
    digest = load(NAME).digest
    (place / "README.md").write_text("A card.")
    (place / "safety_checker").mkdir()
    (place / "safety_checker/config.json").write_text("{}")
    (place / "unet/diffusion_pytorch_model.bin").write_bytes(b"a pickle, never opened")
    assert load(NAME).digest == digest


def test_without_a_network_it_is_said_what_was_tried_and_what_to_do(cache: Path) -> None:
    with pytest.raises(hub.BadModel) as refused:
        load(f"{NAME}@v2")
    error = refused.value
    assert error.code == "not_fetched" and f"“{NAME}” at “v2” could not be fetched" in error.message
    assert "switched off by HF_HUB_OFFLINE" in error.message and str(cache) in error.message
    assert error.hint is not None and "HF_HOME" in error.hint and "diffusers:/path" in error.hint


def test_a_network_that_does_not_answer(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def unreachable(*_: Any, **__: Any) -> str:
        raise huggingface_hub.errors.LocalEntryNotFoundError("Got: ConnectError") from OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(hub.BadModel, match=rf"{constants.ENDPOINT} was asked.* holds no whole copy. no route to host"):
        load(NAME)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("GatedRepoError", "only to those who accepted its terms"),
        ("RepositoryNotFoundError", "neither a folder “acme/tiny-sd@v2” here"),
        ("RevisionNotFoundError", "“acme/tiny-sd” has no revision “v2”"),
    ],
)
def test_what_the_hub_refuses(kind: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = getattr(huggingface_hub.errors, kind)

    def refusing(name: str, *, revision: str, **_: Any) -> str:
        assert (name, revision) == (NAME, "v2")
        raise error.__new__(error, "refused")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refusing)
    with pytest.raises(hub.BadModel, match=said):
        load(f"{NAME}@v2")


def test_a_distilled_network_is_known_by_the_name_of_its_repository(cache: Path, folder: Path) -> None:
    held(cache, "acme/sdxl-turbo", folder)
    with pytest.raises(hub.BadModel, match="“acme/sdxl-turbo” was distilled to draw in few steps"):
        load("acme/sdxl-turbo")


def brought(what: str, endpoint: str, home: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, because huggingface_hub reads its variables when it is imported."""
    code = "import sys; from fanlight.adapters import loader; m = loader.load(loader.source('diffusers:' + sys.argv[1])); print(m.pinned)"
    env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1", "HF_HUB_OFFLINE": "0"}
    return subprocess.run([sys.executable, "-c", code, what], env=env, capture_output=True, text=True, check=False)


def test_it_is_fetched_over_http_and_used_again_without_a_hub(folder: Path, tmp_path: Path) -> None:
    published = tmp_path / "published"
    shutil.copytree(folder, published)
    (published / "README.md").write_text("A card.")
    (published / "unet/diffusion_pytorch_model.bin").write_bytes(b"a pickle")
    (published / "whole.safetensors").write_bytes(b"all in one, again")
    with serving(NAME, published) as (endpoint, taken):
        run = brought(NAME, endpoint, tmp_path / "home")
        assert run.returncode == 0, run.stderr[-2000:]
        assert f"{NAME}@{COMMIT}" in run.stdout
        none = brought("acme/none", endpoint, tmp_path / "home")
        assert f"nor is there a “acme/none” on {endpoint}" in none.stderr
    assert "unet/diffusion_pytorch_model.safetensors" in taken and "tokenizer/tokenizer.json" in taken
    assert (
        not [f for f in taken if not f.endswith((".safetensors", ".json", ".txt"))] and "whole.safetensors" not in taken
    )
    again = brought(NAME, endpoint, tmp_path / "home")  # nobody answers there any more
    assert again.returncode == 0 and again.stdout == run.stdout, again.stderr[-2000:]
    assert f"{endpoint} was asked" in brought("acme/other", endpoint, tmp_path / "home").stderr
