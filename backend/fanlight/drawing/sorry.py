"""The page that a browser gets where a file was wanted and there is none: the sentence, and what to do."""

from __future__ import annotations

from markupsafe import Markup

from fanlight.drawing.page import CSS, environment
from fanlight.errors import FanlightError


def sorry_page(error: FanlightError) -> str:
    """Served with `page.POLICY`, as the other plain pages."""
    made = environment().get_template("sorry.html")
    return made.render(css=Markup(CSS), message=error.message, hint=error.hint or "")
