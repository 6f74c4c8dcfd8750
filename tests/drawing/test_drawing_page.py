"""The share page: complete, plain, and closed: no script of strangers, no request elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from drawing_samples import TRUST, curves, frozen, image_map, record

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.drawing import number, page, pictures
from fanlight.drawing.section import section
from fanlight.images import load

HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}'"


class Reader(HTMLParser):
    """Elements with their attributes, and the text that is read."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data + " "

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.elements if t == tag]

    def meta(self, name: str) -> str | None:
        return next((a["content"] for a in self.all("meta") if name in (a.get("property"), a.get("name"))), None)


def shared(explanations: list[dict], maps: list[Artifact | None], **options) -> str:
    snapshot = {
        "explanations": explanations,
        "view": options.pop("view", {}),
        "created": 1_796_115_600.0,
        "expires": 1_798_707_600.0,
        "title": options.pop("title", ""),
    }
    return page.share_page(
        snapshot, maps=maps, **{"base": "https://fan.example", "token_path": "/pre/s/tok", **options}
    )


def words(html: str) -> str:
    text = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", html, flags=re.S)
    return " ".join(Reader(text).text.split())


def test_the_page_says_everything_that_a_reader_needs(edges):
    text = words(shared([frozen()], [edges]))
    for said in (
        "Why “tabby”?", "EfficientNet-Lite0 says tabby, 61 %.", "of the evidence for tabby", "tabby 61.2 %", "Egyptian cat 20.0 %",
        "window screen < 0.1 %", "faithfulness +0.52 above random (+0.48 to +0.56)", "Insertion +0.40, deletion +0.64, completeness error 0.3 %.",
        "Red is for.", "Grey is new.", "Zeiler & Fergus 2014", "Occlusion, version 2", "window 32, step 16, full cover yes", "seed 7",
        "9f3caaaa…", "41abbbbb…", "torch 2.14.1", "cpu, 2 threads, float32", "3.21 s, 196 forward passes",
        "Frozen on 1 Dec 2026; the link expires on 31 Dec 2026.",
    ):  # fmt: skip
        assert said in text, said


def test_the_scale_is_printed_with_its_ends_and_unit(edges):
    legend = pictures.renderer("image-map").legend(edges)
    html = shared([frozen()], [edges])
    end = f"{legend.hi:.3g}"
    assert f"against −{end} +{end} for" in words(html) and "logit, largest" in words(html)
    stops = [a["stop-color"] for a in Reader(html).all("stop")]
    assert tuple(stops) == legend.stops


def test_the_view_of_the_sharer_rules_the_scale(edges):
    text = words(shared([frozen()], [edges], view={"lo": -20, "hi": 20, "cmap": "grey", "opacity": 0.3}))
    assert "against −20.0 +20.0 for" in text


def test_digests_are_short_with_the_whole_in_the_title(edges):
    titles = {a.get("title") for a in Reader(shared([frozen()], [edges])).all("dd")}
    assert {"9f3c" + "a" * 60, "41ab" + "b" * 60, "9f" * 32} <= titles


def test_a_map_below_the_floor_is_marked_before_anything_else_is_said_of_it(edges):
    low = TRUST.model_copy(update={"above_floor": False, "faithfulness": 0.02})
    text = words(shared([frozen(trust=low)], [edges]))
    assert text.index("Not above the random floor here: do not read it.") < text.index("What it says")
    assert "not above the random floor, do not read it" in text and "Not above" not in words(
        shared([frozen()], [edges])
    )


@pytest.mark.parametrize("state", ["pending", "running", "failed", "unavailable"])
def test_trust_that_was_never_measured_is_said_to_be_so(edges, state):
    html = shared([frozen(trust=wire.Trust(state=state))], [edges])
    assert "curves.png" not in html
    assert ("not measured yet" if state in ("pending", "running") else "trust not available") in words(html)


def test_a_gone_map_is_said_to_be_gone_and_nothing_else_is_shown(edges):
    html = shared([frozen()], [None])
    assert "is gone; nothing else is shown in its place" in words(html)
    assert "overlay.png" not in html and "picture.png" not in html and "of the evidence" not in words(html)


def test_hidden_parts_of_the_picture_are_mentioned(edges):
    html = shared([frozen(edits=[{"mask_region": [0, 0, 5, 5]}])], [edges])
    assert "One part of the picture was hidden from the model" in words(html)


def test_several_explanations_are_sections_of_one_page(edges):
    html = shared([frozen(), frozen(id="e2", method_title="Saliency")], [edges, edges], title="Two methods")
    reader = Reader(html)
    assert len(reader.all("h1")) == 1 and len(reader.all("article")) == 2 and "Two methods" in words(html)
    sources = [a["src"] for a in reader.all("img")]
    assert [s for s in sources if "overlay" in s] == ["/pre/s/tok/0/overlay.png", "/pre/s/tok/1/overlay.png"]
    ids = [a["id"] for _, a in reader.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_every_picture_is_named_beside_the_page_and_is_one_that_is_served(edges):
    reader = Reader(shared([frozen()], [edges]))
    named = {a["src"] for a in reader.all("img")} | {a["srcset"] for a in reader.all("source")}
    assert named == {f"/pre/s/tok/0/{name}" for name in pictures.NAMES}
    assert all(a["alt"] for a in reader.all("img"))


def test_messengers_get_absolute_addresses(edges):
    reader = Reader(shared([frozen()], [edges]))
    assert reader.meta("og:image") == "https://fan.example/pre/s/tok/preview.png"
    assert reader.meta("og:title") == "Why “tabby”?"
    assert "EfficientNet-Lite0 says tabby" in str(reader.meta("og:description"))


def test_robots_and_referrers_are_kept_out(edges):
    for html in (shared([frozen()], [edges]), page.gone_page()):
        assert "noindex" in str(Reader(html).meta("robots")) and Reader(html).meta("referrer") == "no-referrer"


def test_the_page_asks_no_other_host_for_anything(edges):
    paper = {"citation": "Zeiler & Fergus 2014", "link": "https://example.org/paper"}
    for html in (
        shared([frozen(paper=paper)], [edges]),
        shared([frozen(paper=paper)], [edges], images=lambda n, name: b"png"),
        page.gone_page(),
    ):
        reader = Reader(html)
        assert not re.search(r"url\((?!#)|@import", page.CSS + html.split("</style>")[1])
        for tag, attributes in reader.elements:
            loads = [attributes.get(k) for k in ("src", "srcset", "poster", "data", "action", "xlink:href")]
            if tag != "a":
                loads.append(attributes.get("href"))
            assert all(v is None or v.startswith(("/pre/s/tok/", "data:")) for v in loads), (tag, attributes)
        assert all(a["href"] == "https://example.org/paper" and "noreferrer" in str(a["rel"]) for a in reader.all("a"))


@pytest.mark.parametrize("link", ["javascript:alert(1)", "http://example.org", "//example.org", ""])
def test_only_secure_addresses_become_links(edges, link):
    html = shared([frozen(paper={"citation": "A paper", "link": link})], [edges])
    assert Reader(html).all("a") == [] and "A paper" in words(html)


def test_hostile_names_stay_text(edges):
    explanation = frozen(
        target_name=HOSTILE, model_name=HOSTILE, input_name=HOSTILE, explainer_title=HOSTILE, params={HOSTILE: HOSTILE},
        prediction=[wire.Prediction(index=0, name=HOSTILE, probability=0.5, logit=0)], tags=[HOSTILE], note=HOSTILE, id=HOSTILE,
        reading=HOSTILE, misleads=HOSTILE, paper=HOSTILE, method_title=HOSTILE, trust=wire.Trust(state="failed", reason=HOSTILE),
    )  # fmt: skip
    unit = Artifact("map", "image-map", edges.arrays, {**edges.meta, "unit": HOSTILE})
    reader = Reader(shared([explanation, explanation], [unit, unit], title=HOSTILE))
    assert len(reader.all("script")) == 1
    assert not [a for _, a in reader.elements if any(k.startswith("on") or k == "style" for k in a)]
    assert all(str(a["src"]).startswith("/pre/s/tok/") for a in reader.all("img"))
    assert "{{7*7}}" in reader.text and HOSTILE in reader.text


def test_the_policy_allows_this_style_and_script_and_nothing_else(edges):
    html = shared([frozen()], [edges])
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S)
        assert body
        source = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{source}'" in page.POLICY
    assert page.POLICY.startswith("default-src 'none'") and "unsafe" not in page.POLICY


def test_the_page_is_complete_without_its_script(edges):
    fade = next(a for _, a in Reader(shared([frozen()], [edges])).elements if (a.get("class") or "").startswith("fade"))
    assert "hidden" in fade
    assert "hidden" not in page.CSS.split(".fade[hidden]")[0].split(".fade")[-1]


def test_the_self_contained_page_holds_its_pictures(cat, edges):
    explanation = frozen()
    images = {n: pictures.share_image(n, explanation, cat, edges, curves(), {}) for n in pictures.NAMES}
    html = shared([explanation], [edges], images=lambda n, name: images[name], base="", token_path="")
    reader = Reader(html)
    sources = [a["src"] for a in reader.all("img")] + [a["srcset"] for a in reader.all("source")]
    assert len(sources) == 4 and all(str(s).startswith("data:image/png;base64,") for s in sources)
    embedded = {base64.b64decode(str(s).split(",", 1)[1]) for s in sources}
    assert embedded == set(images.values())
    assert (
        "og:image" not in html
        and "expires" not in words(html)
        and page.IN_FILE in str([a.get("content") for a in reader.all("meta")])
    )


def test_the_page_of_a_dead_link_is_always_the_same():
    assert page.gone_page() == page.gone_page()
    assert "nothing at this link" in words(page.gone_page()) and "<script" not in page.gone_page()


def test_the_pictures_of_a_share_follow_its_view_and_edits(cat, edges):
    explanation = frozen(edits=[{"mask_region": [100, 50, 300, 250]}])

    def draw(name, **view):
        return load(pictures.share_image(name, explanation, cat, edges, curves(), view))

    assert draw("picture.png").shape[:2] == draw("overlay.png").shape[:2] == pictures.extent(edges)[::-1]
    assert (draw("picture.png")[320, 320] == 128).all()
    assert not (draw("overlay.png", opacity=0.1) == draw("overlay.png", opacity=0.9)).all()
    assert draw("curves.png").mean() > 200 > 60 > draw("curves-dark.png").mean()


def test_a_picture_that_is_none_of_the_share_is_not_drawn(cat):
    flat = image_map([[1.0]], signed=False)
    for name in ("../overlay.png", "overlay", "curves.svg"):
        with pytest.raises(KeyError):
            pictures.share_image(name, frozen(), cat, flat, curves(), {})
    with pytest.raises(KeyError):
        pictures.share_image("curves.png", frozen(), cat, flat, None, {})


def test_a_value_is_printed_with_its_unit_and_without_a_bar():
    answer = wire.Prediction(index=0, name="age", probability=None, logit=31.462, unit="years")
    made = section(record(prediction=[answer]).model_dump(mode="json"), None, {}, lambda name: None)
    assert made.answer == "EfficientNet-Lite0 says age, 31.5 years."
    assert [(a.chance, a.width) for a in made.answers] == [("31.5 years", "0.00")]
    assert number.output(0.613, 2.0) == "61 %" and number.output(None, -0.25) == "−0.250"
