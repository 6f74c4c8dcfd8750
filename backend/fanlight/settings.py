"""Settings: read once from `FANLIGHT_*`, typed, each documented in docs/settings.md (a test compares)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


def _prefix(value: str) -> str:
    """A path prefix has a leading slash and no trailing one; the root is empty."""
    value = value.strip().strip("/")
    return f"/{value}" if value else ""


def _bounds(value: str) -> str:
    """How many of something: a number, or two, least and most."""
    parts = value.split(":")
    if len(parts) > 2 or not all(p.isdigit() and len(p) < 5 for p in parts) or int(parts[0]) > int(parts[-1]):
        raise ValueError(f"“{value}” is neither a number such as 2 nor two, least and most, such as 1:4")
    return value


def _origins(value: str) -> str:
    """Origins only, each a scheme and a host: what goes into a policy must not end it or widen it."""
    for origin in Settings.listed(value):
        if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?", origin):
            raise ValueError(f"“{origin}” is not an origin such as https://wiki.example.org")
    return value


class Settings(BaseSettings):
    """All settings of a server. Every field is an environment variable `FANLIGHT_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="FANLIGHT_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address to bind. Anything but loopback needs FANLIGHT_TOKEN.")
    port: int = Field(8321, ge=0, le=65535, description="Port to bind; 0 picks a free one.")
    data_dir: Path = Field(
        Path("fanlight-data"), description="Folder of the SQLite database, the artifacts and the token."
    )
    token: str | None = Field(
        None, description="Access token. Without it one is made, kept in the data folder and printed."
    )
    public_url: str | None = Field(
        None, description="Address under which others reach this server; share links are built from it."
    )
    root_path: Annotated[str, AfterValidator(_prefix)] = Field(
        "", description="Path prefix behind a proxy, for example /fanlight."
    )
    allowed_hosts: str = Field(
        "", description="Comma-separated Host names to accept besides loopback, the bound address and the public URL."
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL, for example postgresql://user@host/db. Default: SQLite in the data folder."
    )
    artifacts_url: str | None = Field(
        None,
        description="Where artifacts are kept: a folder or s3://bucket/prefix (credentials from AWS_* variables). Default: the data folder.",
    )
    engine: Literal["local", "ray", "inline"] = Field(
        "local",
        description="local: a compute worker on this machine. ray: replicas of Ray Serve. inline: in the request, for tests.",
    )
    ray_address: str = Field(
        "",
        description="Ray cluster to join, for example auto or 10.0.0.5:6379; its token in RAY_AUTH_TOKEN. Default: one of its own, on loopback.",
    )
    ray_interactive: Annotated[str, AfterValidator(_bounds)] = Field(
        "1", pattern=r"^[1-9]", description="Replicas for what people wait for: a number, or least:most."
    )
    ray_bulk: Annotated[str, AfterValidator(_bounds)] = Field(
        "1", description="Replicas for sweeps: a number, or least:most; 0: sweeps go to the others."
    )
    ray_gpus: float = Field(
        0,
        ge=0,
        le=16,
        description="GPUs that a replica reserves; 0.5: two share one. Default: one where the device is cuda.",
    )
    isolate: bool = Field(
        True,
        description="Run the local engine in a child process, so that a crash or a hang of a model does not end the server.",
    )
    device: str = Field(
        "auto",
        pattern=r"^(auto|cpu|cuda(:\d{1,2})?)$",
        description="cpu, cuda, cuda:1, ... or auto: CUDA where there is one, else the CPU.",
    )
    threads: int = Field(0, ge=0, le=256, description="CPU threads of the compute worker; 0: all cores.")
    memory_mb: int = Field(
        4096, ge=256, description="Budget in MiB for resident models and reusable intermediates of the compute worker."
    )
    device_memory_mb: int = Field(
        0,
        ge=0,
        description="Budget in MiB of GPU memory for resident models; 0: half of what is free when the compute worker starts.",
    )
    default_model: bool = Field(
        True, description="Register the model that comes with the installation, EfficientNet-Lite0."
    )
    models: str = Field(
        "", description="Comma-separated models to register: bundle folders, Python files, or models of libraries."
    )
    datasets: str = Field("", description="Comma-separated name=folder pairs of picture folders to register.")
    field_guide: bool = Field(
        True,
        description="Offer the field guide: 192 drawn birds, made once per data folder, after the worked examples; and the network that tells "
        "them apart.",
    )
    scenes: bool = Field(
        True,
        description="Offer the scenes: models that draw two objects from words, the exact one of that world first.",
    )
    word_model: Path | None = Field(
        None,
        description="Folder of a masked language model (transformers, safetensors) that says how probable the words of a prompt are.",
    )
    trainings: Path | None = Field(
        None, description="Folder where recipes leave the logs of their trainings, to be shown under Jobs."
    )
    explainers: str = Field("", description="Comma-separated Python files with further explainers.")
    trust: Literal["auto", "request"] = Field(
        "auto", description="auto: every map's faithfulness is measured after it. request: only when asked for."
    )
    examples: bool = Field(True, description="Compute the worked examples when the data folder is new.")
    max_upload_mb: int = Field(64, ge=1, le=1024, description="Largest upload in MiB.")
    max_megapixels: int = Field(40, ge=1, le=400, description="Largest picture in megapixels, checked before decoding.")
    queue_limit: int = Field(200_000, ge=1, description="Most queued work in forward passes before 429.")
    principal_limit: int = Field(256, ge=1, description="Most unfinished jobs of one person before 429.")
    request_limit: int = Field(
        4,
        ge=1,
        le=1000,
        description="Most requests that are worked on at once; others wait for a moment, and are answered 429 while more come than go.",
    )
    job_deadline: int = Field(3600, ge=1, description="Seconds from submission after which an unfinished job expires.")
    step_timeout: int = Field(
        120, ge=1, description="Seconds without a step after which the isolated compute worker is replaced."
    )
    session_days: int = Field(
        14, ge=1, le=365, description="Days after which somebody who logged in with a name has to again."
    )
    oidc_issuer: str = Field(
        "",
        max_length=500,
        description="Provider of identities (OpenID Connect) that people may log in through, for example https://id.example.org/realms/lab.",
    )
    oidc_client_id: str = Field("", description="Name under which this server is registered with the provider.")
    oidc_client_secret: str | None = Field(None, description="Secret of that registration. Default: a public client.")
    oidc_scopes: str = Field(
        "openid email profile",
        pattern=r"\bopenid\b",
        description="What the provider is asked for, separated by spaces.",
    )
    oidc_label: str = Field("single sign-on", max_length=60, description="What the login page calls the provider.")
    oidc_new: str = Field(
        "",
        description="WORKSPACE=ROLE that people have whom nobody linked to an account. Default: they are refused.",
    )
    oidc_domains: str = Field(
        "",
        description="Comma-separated domains; of people whom nobody linked only those with a verified address there are let in. Default: any.",
    )
    share_days: int = Field(30, ge=1, le=3650, description="Days a share link lives unless told otherwise.")
    retention_days: int = Field(
        0,
        ge=0,
        le=36500,
        description="Days after which explanations without tag, title, note, live share or sweep are deleted; 0: never.",
    )
    event_days: int = Field(
        7,
        ge=1,
        le=3650,
        description="Days for which events are kept, so that a page that was away is told what it missed; after longer it is loaded anew.",
    )
    embed_parents: Annotated[str, AfterValidator(_origins)] = Field(
        "",
        description="Comma-separated origins whose pages may show share pages with ?embed=1 in a frame, for example https://wiki.example.org.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Log level.")

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{(self.data_dir / 'fanlight.sqlite').resolve()}"

    @property
    def artifacts(self) -> str:
        return self.artifacts_url or str((self.data_dir / "artifacts").resolve())

    @property
    def loopback(self) -> bool:
        return self.host in ("127.0.0.1", "localhost", "::1")

    @staticmethod
    def listed(value: str) -> list[str]:
        """A comma-separated setting as a list, blanks dropped."""
        return [v.strip() for v in value.split(",") if v.strip()]
