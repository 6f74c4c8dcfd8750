"""Where Chromium is, and how it is started in a test."""

from __future__ import annotations

import os
import shutil

MISSING = "Chromium is not installed; on Debian: apt-get install chromium. FANLIGHT_TEST_CHROMIUM names another place."
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
"""A quiet browser that asks nobody anything. Without the sandbox, because tests often run as root."""


def chromium() -> str | None:
    """Path of an installed Chromium, or None."""
    named = os.environ.get("FANLIGHT_TEST_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)
