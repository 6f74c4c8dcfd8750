"""The manifest for Kubernetes: what it promises, checked without a cluster. Anchors are per document in YAML, so that is checked too."""

import re
from importlib.metadata import PackageNotFoundError, version

import pytest
import yaml

from fanlight.engine.cluster import planned
from fanlight.settings import Settings

KINDS = {
    "ConfigMap": "v1",
    "RayCluster": "ray.io/v1",
    "Deployment": "apps/v1",
    "Service": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
}
CLUSTER = {"rayVersion", "enableInTreeAutoscaling", "autoscalerOptions", "headGroupSpec", "workerGroupSpecs"}
WORKERS = {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}


@pytest.fixture(scope="module")
def text(root):
    return (root / "deploy" / "kubernetes" / "fanlight.yaml").read_text()


@pytest.fixture(scope="module")
def found(text):
    """kind -> objects."""
    objects = {}
    for document in yaml.safe_load_all(text):
        assert document["apiVersion"] == KINDS[document["kind"]]
        objects.setdefault(document["kind"], []).append(document)
    assert set(objects) == set(KINDS)
    return objects


@pytest.fixture(scope="module")
def pods(found):
    """name -> specification of every pod."""
    (cluster,), (server,) = found["RayCluster"], found["Deployment"]
    groups = {"head": cluster["spec"]["headGroupSpec"]}
    groups |= {g["groupName"]: g for g in cluster["spec"]["workerGroupSpecs"]}
    return {name: g["template"] for name, g in groups.items()} | {"server": server["spec"]["template"]}


def test_the_ray_cluster_has_the_fields_of_its_kind(found):
    (cluster,) = found["RayCluster"]
    assert set(cluster["spec"]) == CLUSTER
    for group in cluster["spec"]["workerGroupSpecs"]:
        assert set(group) == WORKERS
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    assert set(cluster["spec"]["headGroupSpec"]) == {"rayStartParams", "template"}
    starts = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    assert all(isinstance(v, str) for g in starts for v in g["rayStartParams"].values())


def test_it_names_the_version_of_ray_that_is_tested(found):
    try:
        installed = version("ray")
    except PackageNotFoundError:
        pytest.skip("fanlight[ray] is not installed")
    assert found["RayCluster"][0]["spec"]["rayVersion"] == installed


def test_every_pod_is_unprivileged_read_only_bounded_and_watched(pods):
    for name, pod in pods.items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True and spec["securityContext"]["runAsUser"] > 0, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True and context["allowPrivilegeEscalation"] is False, name
            assert context["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"], name
            assert container["livenessProbe"] and container["readinessProbe"], name
            mounted = {m["name"] for m in container["volumeMounts"]}
            assert mounted == {v["name"] for v in spec["volumes"]} and {"tmp", "shm"} <= mounted, name
            assert all("emptyDir" in v for v in spec["volumes"]), name
        assert spec.get("automountServiceAccountToken") is (name == "head"), name


def test_all_run_one_image_of_this_version_with_the_same_settings(pods, root):
    own = re.search(r'^version = "(.*)"', (root / "pyproject.toml").read_text(), re.M)[1]
    containers = [c for pod in pods.values() for c in pod["spec"]["containers"]]
    assert {c["image"].rsplit("/", 1)[1] for c in containers} == {f"fanlight-backend-ray:{own}"}
    wanted = [{"configMapRef": {"name": "fanlight"}}, {"secretRef": {"name": "fanlight"}}]
    assert all(c["envFrom"] == wanted for c in containers)


def test_its_settings_exist_and_fit_the_nodes(found, pods):
    data = found["ConfigMap"][0]["data"]
    assert all(isinstance(v, str) for v in data.values())
    fields = {k.removeprefix("FANLIGHT_").lower(): v for k, v in data.items() if k.startswith("FANLIGHT_")}
    assert set(fields) <= set(Settings.model_fields)
    plan = planned(Settings(**fields))
    (group,) = found["RayCluster"][0]["spec"]["workerGroupSpecs"]
    assert sum(pool.most for pool in plan.pools.values()) * plan.gpus <= group["maxReplicas"]
    asked = pods["gpu"]["spec"]["containers"][0]["resources"]["requests"]
    assert plan.cpus <= int(asked["cpu"]) and plan.gpus <= int(asked["nvidia.com/gpu"])
    assert sum(pool.least for pool in plan.pools.values()) <= group["minReplicas"], (
        "what must run has room at the start"
    )


def test_no_secret_is_in_it_and_each_that_it_needs_is_named(found, text):
    assert "kind: Secret" not in text
    named = set(
        re.search(r"secrets\.env has (.*?)\. PostgreSQL", text.replace("\n#", ""), re.S)[1]
        .replace(" and", ",")
        .split(", ")
    )
    assert named == {
        "FANLIGHT_TOKEN",
        "FANLIGHT_DATABASE_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "RAY_AUTH_TOKEN",
    }
    assert not named & set(found["ConfigMap"][0]["data"])


def test_ray_asks_for_the_token_shows_no_dashboard_and_is_reached_by_these_pods_alone(found, pods):
    data, (cluster,) = found["ConfigMap"][0]["data"], found["RayCluster"]
    assert (data["RAY_AUTH_MODE"], data["RAY_USAGE_STATS_ENABLED"]) == ("token", "0")
    head = cluster["spec"]["headGroupSpec"]["rayStartParams"]
    assert head["include-dashboard"] == "false"
    told = {e["name"] for e in cluster["spec"]["autoscalerOptions"]["env"]}
    assert told == {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"}
    policies = {p["metadata"]["name"]: p["spec"] for p in found["NetworkPolicy"]}
    ray = policies["fanlight-ray"]
    assert ray["ingress"] == [{"from": [{"podSelector": {"matchLabels": {"app": "fanlight"}}}]}]
    for name in ("head", "gpu"):
        assert ray["podSelector"]["matchLabels"].items() <= pods[name]["metadata"]["labels"].items()
    (service,) = found["Service"]
    assert service["spec"]["type"] == "ClusterIP" and [p["targetPort"] for p in service["spec"]["ports"]] == ["http"]


def test_the_servers_join_before_they_serve_and_are_asked_what_they_answer(pods, found):
    (container,) = pods["server"]["spec"]["containers"]
    (line,) = container["args"]
    assert container["command"] == ["sh", "-c"]
    assert re.match(r"ray start --address=fanlight-head-svc:6379 --num-cpus=0 .*&& exec fanlight serve ", line)
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    (deployment,) = found["Deployment"]
    assert deployment["spec"]["selector"]["matchLabels"] == pods["server"]["metadata"]["labels"]
