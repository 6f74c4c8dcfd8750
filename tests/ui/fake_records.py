"""Records as the wire has them, for the stand-in API."""

from __future__ import annotations

import time
from typing import Any

from fake_people import People

from fanlight import wire

NOW = 1_790_000_000.0
PHOTOS = {
    "chelsea": ("tabby", 0.61),
    "astronaut": ("space suit", 0.83),
    "coffee": ("espresso", 0.93),
    "rocket": ("missile", 0.55),
    "hubble_deep_field": ("matchstick", 0.12),
    "retina": ("Petri dish", 0.31),
    "camera": ("tripod", 0.88),
    "coins": ("chain mail", 0.21),
    "moon": ("geyser", 0.09),
}
METHODS = [
    ("occlusion", "Occlusion"),
    ("integrated-gradients", "Integrated gradients"),
    ("saliency", "Saliency"),
    ("grad-cam", "Grad-CAM"),
]
CARD = """# EfficientNet-Lite0

Trained on **ImageNet-1k**.

| measure | value |
|---|---|
| top-1 | 75.1 % |

- small
- no squeeze-and-excite

<script>window.hacked = 1</script>

[a link](javascript:window.hacked=1)
"""
CLASSES = [name for name, _ in PHOTOS.values()] + [f"class {i}" for i in range(60)]


class Store:
    """What the fake knows. Tests change it as they need."""

    def __init__(self, count: int = 130) -> None:
        self.explanations = {e.id: e for e in (explanation(i) for i in range(count))}
        self.jobs = {j.id: j for j in jobs()}
        self.reading: list[wire.DatasetReading] = []
        self.shares = {s.id: s for s in shares()}
        self.people = People()
        self.events: list[dict[str, Any]] = []
        self.streaming = True
        self.asked: list[str] = []
        self.me: dict[str, Any] = {
            "principal": "token", "workspace": "default", "workspace_name": "Default", "operator": True,
            "scopes": ["read", "explain", "share", "admin"],
        }  # fmt: skip

    def emit(self, **event: Any) -> None:
        self.events.append(event)


def explanation(i: int) -> wire.Explanation:
    photo = list(PHOTOS)[i % len(PHOTOS)]
    name, p = PHOTOS[photo]
    method, title = METHODS[(i // 2) % len(METHODS)]
    faith = round(0.52 - 0.07 * (i % 9), 2)
    trust = wire.Trust(
        state="succeeded",
        faithfulness=faith,
        insertion=faith,
        deletion=faith,
        above_floor=faith > 0.1,
        interval={"faithfulness": wire.Interval(lo=faith - 0.05, hi=faith + 0.05)},
    )
    return wire.Explanation(
        id=f"e{i:04d}",
        state="succeeded",
        model="efficientnet-lite0",
        model_name="EfficientNet-Lite0",
        input=photo,
        input_name=f"{photo}.png",
        explainer=method,
        explainer_title=title,
        family="attribution",
        target={"class": CLASSES.index(name)},
        target_name=name,
        params={},
        seed=0,
        prediction=[wire.Prediction(index=CLASSES.index(name), name=name, probability=p, logit=8.1)],
        summary=f"The middle carries 61 % of the evidence for {name}.",
        trust=trust if i % 10 else wire.Trust(state="pending"),
        provenance=wire.Provenance(
            key="0" * 64,
            model_digest="9f3c" * 16,
            input_digest="41ab" * 16,
            explainer_version="1",
            numerics="cpu/f32",
            created=NOW - i,
        ),
        tags=["shortcut"] if i % 7 == 3 else [],
        outcome=None if i % 3 == 2 else ("right" if i % 4 else "wrong"),
        dataset="photographs",
        principal="me",
        created=NOW - 600 * i,
    )


def examination(model: str) -> wire.Examination:
    """One with every outcome."""
    checks = [
        wire.Finding(name="load", outcome="good", says="EfficientNet-Lite0: 1000 classes, 224 x 224 pixels."),
        wire.Finding(
            name="batch",
            outcome="warning",
            says="In a batch it answers a little differently: 2e-4.",
            hint="Look for batch statistics.",
        ),
        wire.Finding(name="attention", outcome="none", says="It has no attention."),
    ]
    costs = [
        wire.Cost(name="saliency", available=True, forwards=2, seconds=0.043, peak_mb=61.5, measured=True),
        wire.Cost(name="occlusion", available=True, forwards=785, seconds=31.0, peak_mb=None),
        wire.Cost(name="grad-cam", available=True, error="it changed the model"),
        wire.Cost(name="lrp", available=False, reason="It needs a chain of layers."),
    ]
    return wire.Examination(
        state="done",
        model=model,
        seconds=60,
        finished=NOW,
        sound=True,
        checks=checks,
        costs=costs,
        forward_seconds=0.017,
        device="cpu",
    )


def jobs() -> list[wire.Job]:
    made = time.time()
    return [
        wire.Job(
            id="j1",
            explanation="e0003",
            state="running",
            progress=0.42,
            message="window 412 of 980",
            seconds_left=14,
            mine=True,
            title="Occlusion of coffee.png",
            created=made - 20,
            started=made - 10,
        ),
        wire.Job(
            id="j2",
            explanation="e0004",
            state="queued",
            place=2,
            seconds_left=40,
            mine=True,
            title="Kernel SHAP of rocket.jpg",
            created=made - 9,
        ),
        wire.Job(
            id="j3",
            explanation="e0005",
            state="running",
            kind="trust",
            progress=0.1,
            mine=False,
            title="Trust of Saliency of coins.png",
            created=made - 60,
            started=made - 2,
        ),
        wire.Job(
            id="j4",
            explanation="e0006",
            state="failed",
            mine=True,
            title="Integrated gradients of moon.png",
            created=made - 300,
            started=made - 299,
            finished=made - 297,
            error=wire.ErrorBody(
                code="not_finite",
                message="The model returned NaN for this picture.",
                hint="Run fanlight doctor on the model.",
            ),
        ),
        wire.Job(
            id="j5",
            explanation="e0007",
            state="succeeded",
            progress=1,
            mine=True,
            title="Saliency of camera.png",
            created=made - 900,
            started=made - 899,
            finished=made - 898,
        ),
    ]


def shares() -> list[wire.Share]:
    return [
        wire.Share(
            id="s1",
            explanations=["e0001"],
            title="Why “space suit”?",
            created=NOW - 86400,
            expires=NOW + 29 * 86400 + 1e8,
            views=12,
            principal="me",
        ),
        wire.Share(
            id="s2",
            explanations=["e0002", "e0003"],
            title="Two methods on one cup",
            created=NOW - 3e6,
            expires=NOW - 4e5,
            views=3,
            principal="me",
        ),
        wire.Share(
            id="s3",
            explanations=["e0004"],
            title="",
            created=NOW - 9e5,
            expires=NOW + 1e8,
            revoked=NOW - 1e5,
            views=0,
            principal="me",
        ),
    ]


def models() -> list[wire.Model]:
    available = [wire.Availability(name=m, available=True) for m, _ in METHODS]
    return [
        wire.Model(
            id="efficientnet-lite0",
            name="EfficientNet-Lite0",
            task="image-classifier",
            digest="9f3c" * 16,
            description="A small convolutional network trained on ImageNet-1k.",
            terms="Apache-2.0",
            size=(224, 224),
            classes=CLASSES,
            capabilities=["gradients", "sites"],
            explainers=available,
            card=CARD,
        ),
        wire.Model(
            id="black-box",
            name="Black box",
            task="image-classifier",
            digest="77aa" * 16,
            description="Answers only.",
            size=(64, 64),
            classes=["one", "two"],
            capabilities=[],
            explainers=[
                wire.Availability(name="occlusion", available=True),
                wire.Availability(
                    name="saliency", available=False, reason="Saliency needs gradients, and this model offers none."
                ),
            ],
        ),
    ]


def explainers() -> list[wire.ExplainerInfo]:
    paper = wire.Citation(citation="Somebody, 2017", link="https://example.org", bibtex="@misc{x}")
    return [
        wire.ExplainerInfo(
            name=name, title=title, family="attribution", version="1", summary=f"{title} in a line.", reading="Read it so.",
            misleads="It misleads so.",
            accepts="image-classifier", needs=[], params={}, returns=["image-map"], cost=1 + 100 * i, paper=paper, docs="",
        )
        for i, (name, title) in enumerate(METHODS)
    ]  # fmt: skip
