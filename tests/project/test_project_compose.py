"""The compose file: its schema and its promises. Its commands run as processes in test_project_deployment.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml


@pytest.fixture(scope="module")
def compose(root):
    return yaml.safe_load((root / "docker-compose.yml").read_text())


def test_it_fits_the_compose_schema(root):
    check = Path(sys.executable).parent / "check-jsonschema"
    command = [check, "--builtin-schema", "vendor.compose-spec", root / "docker-compose.yml"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_only_the_proxy_publishes_a_port_and_only_on_loopback_unless_told(compose):
    published = {name: s["ports"] for name, s in compose["services"].items() if "ports" in s}
    assert published == {"proxy": ["${FANLIGHT_PUBLISH:-127.0.0.1:8080}:8080"]}
    assert compose["networks"]["inside"]["internal"] is True
    assert [name for name, s in compose["services"].items() if "outside" in s["networks"]] == ["proxy"]


def test_every_service_is_unprivileged_read_only_and_watched(compose):
    for name, service in compose["services"].items():
        assert int(service["user"].split(":")[0]) > 0, name
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"], name
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert "privileged" not in service, name


def test_images_of_others_are_pinned_by_digest(compose, root):
    foreign = [s["image"] for s in compose["services"].values() if "build" not in s]
    foreign += re.findall(r"^FROM (\S+)", (root / "Dockerfile").read_text(), re.M)
    foreign = [image for image in foreign if image != "base"]
    assert len(foreign) == 4
    assert [image for image in foreign if not re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)] == []


def test_the_gpu_is_reserved_only_in_its_profile(compose):
    reserving = {name: s["profiles"] for name, s in compose["services"].items() if "deploy" in s}
    assert reserving == {"backend": ["gpu"]}
    assert compose["services"]["backend-cpu"]["profiles"] == ["cpu"]


def test_every_node_of_ray_asks_for_the_token_and_shows_nothing(compose):
    nodes = {name: s for name, s in compose["services"].items() if "ray" in s.get("profiles", ())}
    assert set(nodes) == {"backend-ray", "ray-head", "ray-worker"}
    for name, node in nodes.items():
        assert node["environment"]["RAY_AUTH_MODE"] == "token", name
        assert node["environment"]["RAY_AUTH_TOKEN"] == "${RAY_AUTH_TOKEN:-}", name
        assert "--disable-usage-stats" in " ".join(node["command"]), name
        assert node["image"] == "fanlight-backend-ray:0.1.0" and "ports" not in node, name
        assert node["environment"]["FANLIGHT_ARTIFACTS_URL"] and node["environment"]["AWS_ACCESS_KEY_ID"], name
    assert "--include-dashboard=false" in nodes["ray-head"]["command"]


def test_the_replicas_of_ray_fit_the_settings(compose):
    from fanlight.engine.cluster import planned
    from fanlight.settings import Settings

    said = compose["services"]["backend-ray"]["environment"]
    fields = {k.removeprefix("FANLIGHT_").lower(): v for k, v in said.items() if k.startswith("FANLIGHT_")}
    plan = planned(Settings(**{k: v for k, v in fields.items() if not str(v).startswith("$")}))
    assert plan.address == "auto" and set(plan.pools) == {"interactive", "bulk"} and plan.cpus == 2


def test_secrets_come_from_the_environment_and_each_is_in_the_example(root):
    text = (root / "docker-compose.yml").read_text()
    secrets = set(re.findall(r"\$\{(\w+):\?", text))
    assert {"FANLIGHT_TOKEN", "POSTGRES_PASSWORD", "S3_SECRET_KEY"} <= secrets
    example = dict(re.findall(r"^(\w+)=(.*)$", (root / "deploy" / "example.env").read_text(), re.M))
    assert set(re.findall(r"\$\{(\w+)[:}]", text)) <= set(example)
    assert {example[name] for name in ("FANLIGHT_TOKEN", "POSTGRES_PASSWORD", "S3_SECRET_KEY")} == {""}


def test_the_proxy_sends_every_public_path_to_its_service(root):
    config = (root / "deploy" / "nginx.conf").read_text()
    routes = dict(re.findall(r"location (?:= )?(\S+) \{ proxy_pass http://(\w+); \}", config))
    backend = ("/api/", "/s/", "/login", "/login/", "/logout", "/healthz", "/readyz", "/metrics")
    assert routes == {**dict.fromkeys(backend, "backend"), "/": "frontend"}
    assert "proxy_buffering off" in config and "access_log off" in config
