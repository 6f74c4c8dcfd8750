"""The commands of the compose services as plain processes: API on PostgreSQL and S3, pages apart from it, one token for both."""

import re
import subprocess

import httpx
import pytest
import yaml
from PIL import Image

from fanlight.cli.pages import application
from fanlight.client import Client
from fanlight.errors import FanlightError
from fanlight.settings import Settings
from support.processes import BIN, Process, answers, free_port


@pytest.fixture
def command(root):
    """`command("frontend", port=..., api=...)`: what a compose service runs, on loopback and other ports."""
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]

    def make(service, **options):
        words = [*services[service]["command"]]
        for name, value in {"host": "127.0.0.1", **options}.items():
            words[words.index(f"--{name}") + 1] = str(value)
        return [BIN / "fanlight", *words]

    return make


def environment(root, service):
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    return set(services[service]["environment"])


@pytest.mark.slow
@pytest.mark.postgres
def test_api_and_pages_work_as_two_processes_on_postgres_and_s3(root, command, tmp_path, postgres_url, s3_bucket):
    port, pages_port, token = free_port(), free_port(), "deployment-token"
    api_url, pages_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{pages_port}"
    settings = {
        "FANLIGHT_TOKEN": token,
        "FANLIGHT_PUBLIC_URL": "https://fanlight.example",
        "FANLIGHT_ALLOWED_HOSTS": "backend",
        "FANLIGHT_DATABASE_URL": postgres_url,
        "FANLIGHT_ARTIFACTS_URL": s3_bucket.url,
        "FANLIGHT_DEVICE": "cpu",
        **s3_bucket.env,
    }
    assert environment(root, "backend-cpu") - {"HOME"} == set(settings)
    api = Process(
        command("backend-cpu", port=port, **{"data-dir": tmp_path / "data"}),
        ready=lambda: answers(f"{api_url}/readyz"),
        log=tmp_path / "api.log",
        env={**settings, "FANLIGHT_EXAMPLES": "false"},
    )
    pages = Process(
        command("frontend", port=pages_port, api=api_url),
        ready=lambda: answers(f"{pages_url}/healthz"),
        log=tmp_path / "pages.log",
        env={"FANLIGHT_TOKEN": token, "FANLIGHT_PUBLIC_URL": "https://fanlight.example"},
    )
    picture = tmp_path / "picture.png"
    Image.radial_gradient("L").convert("RGB").save(picture)
    try:
        api.start()
        pages.start()
        with Client(api_url, token) as client:
            record = client.explain("efficientnet-lite0", client.upload(picture).id, "saliency")
            assert record.state == "succeeded"
            assert client.artifact(record.artifacts[0].digest).arrays["value"].ndim == 2
            link = client.share([record.id])
        assert link.url.startswith("https://fanlight.example/s/") and not link.loopback_only
        shared = httpx.get(f"{api_url}/s/{link.token}", headers={"Host": "fanlight.example"}, trust_env=False)
        assert shared.status_code == 200 and "<img" in shared.text

        with httpx.Client(base_url=pages_url, trust_env=False) as browser:
            assert browser.get("/").status_code == 401
            welcome = browser.get("/", params={"token": token})
            assert welcome.status_code == 303 and "token" not in welcome.headers["location"]
            page = browser.get("/")
            assert page.status_code == 200 and "Fanlight" in page.text
            # Behind the proxy both are one origin: the cookie of the pages opens the API.
            name, value = next(iter(browser.cookies.items()))
            seen = httpx.get(f"{api_url}/api/v1/system", cookies={name: value}, trust_env=False)
            assert seen.status_code == 200
            layout = browser.get("/_dash-layout")
            assert layout.status_code == 200 and layout.json()
        assert not re.search("Traceback", api.output() + pages.output())
    finally:
        pages.stop()
        api.stop()


def test_pages_without_a_token_are_refused(command, tmp_path):
    run = subprocess.run(
        command("frontend", port=free_port(), api="http://127.0.0.1:1"),
        capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 1
    assert "FANLIGHT_TOKEN" in run.stderr and "Traceback" not in run.stderr


def test_an_empty_token_lets_nobody_in():
    with pytest.raises(FanlightError, match="need the access token"):
        application(Settings(token=""), "http://127.0.0.1:1")
