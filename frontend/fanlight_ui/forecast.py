"""What a method will cost, said before it runs: forward passes as it declares them, seconds by what this server measured of itself."""

from __future__ import annotations

from fanlight_ui.views.numbers import seconds


def words(cost: int, throughput: float | None = None) -> str:
    """ "≈ 514 forward passes, about 6 s here"; `throughput` in passes per second, None where it is not known."""
    if not cost:
        return "does not ask the model"
    return f"≈ {cost:,} forward passes" + (f", about {seconds(cost / throughput)} here" if throughput else "")
