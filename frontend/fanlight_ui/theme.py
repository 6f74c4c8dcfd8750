"""The tokens of the look, once: as CSS variables for our own styles and as the theme of the Mantine components."""

from __future__ import annotations

from typing import Any

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace'

TOKENS: dict[str, tuple[str, str]] = {
    # name: (light, dark)
    "paper": ("#FBFBF9", "#14161A"),
    "card": ("#FFFFFF", "#1C1F25"),
    "ink": ("#1B1D21", "#ECEDEF"),
    "ink-2": ("#5C626D", "#9BA1AC"),
    "line": ("#E4E4DF", "#2C3038"),
    "accent": ("#0B7A75", "#4FC3BC"),
    "on-accent": ("#FFFFFF", "#0C1F1E"),
    "accent-soft": ("#E1F1F0", "#17373A"),
    "accent-ink": ("#07524E", "#4FC3BC"),
    "for": ("#B2432F", "#E58A78"),
    "against": ("#2B6CB0", "#7FB0E3"),
    "warn": ("#B7791F", "#E0B050"),
    "warn-ink": ("#7A4B06", "#E8C377"),
    "warn-soft": ("#FBF1DC", "#3A3018"),
    "good-ink": ("#1E5E3A", "#8FD3A9"),
    "good-soft": ("#E6F3EA", "#1B3426"),
    "bad-ink": ("#96301E", "#F0A595"),
    "bad-soft": ("#FBE9E5", "#3D211C"),
}

# Light and dark pick different shades of the one accent, so that both have contrast.
ACCENT = ["#E6F4F3", "#CCE8E6", "#9FD6D2", "#72CAC4", "#4FC3BC", "#1F9A93", "#0B7A75", "#096660", "#07524E", "#053F3C"]
GREY = ["#F7F7F4", "#F1F1ED", "#EBEBE6", "#E4E4DF", "#D3D4CE", "#8A8F98", "#5C626D", "#454A53", "#2E3238", "#1B1D21"]
DARK = ["#ECEDEF", "#C6CAD1", "#9BA1AC", "#6B717C", "#2C3038", "#252930", "#1C1F25", "#14161A", "#101215", "#0B0C0F"]

THEME: dict[str, Any] = {
    "fontFamily": FONT,
    "fontFamilyMonospace": MONO,
    "primaryColor": "accent",
    "primaryShade": {"light": 6, "dark": 4},
    "autoContrast": True,
    "luminanceThreshold": 0.35,
    "black": TOKENS["ink"][0],
    "colors": {"accent": ACCENT, "gray": GREY, "dark": DARK},
    "defaultRadius": 6,
    "focusRing": "auto",
    "fontSizes": {"xs": "12px", "sm": "13px", "md": "15px", "lg": "20px", "xl": "28px"},
    "lineHeights": {"md": "1.47"},
    "spacing": {"xs": "4px", "sm": "8px", "md": "16px", "lg": "24px", "xl": "40px"},
    "headings": {
        "fontFamily": FONT,
        "fontWeight": "650",
        "sizes": {"h1": {"fontSize": "28px"}, "h2": {"fontSize": "20px"}, "h3": {"fontSize": "15px"}},
    },
}


def css() -> str:
    """The tokens as CSS variables. The system's preference rules until somebody chooses light or dark."""

    def block(i: int) -> str:
        scheme = "dark" if i else "light"
        return "".join(f"--{name}:{pair[i]};" for name, pair in TOKENS.items()) + f"color-scheme:{scheme};"

    return (
        f":root{{--font:{FONT};--mono:{MONO};{block(0)}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-mantine-color-scheme=light]){{{block(1)}}}}}"
        f":root[data-mantine-color-scheme=dark]{{{block(1)}}}"
    )
