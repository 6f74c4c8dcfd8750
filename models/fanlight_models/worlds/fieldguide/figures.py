"""`python -m fanlight_models.worlds.fieldguide.figures` computes the figures of the world's card anew, as JSON."""

from __future__ import annotations

import json
import sys
import time

from fanlight_models.worlds.fieldguide import COUPLED, arrays, split, table
from fanlight_models.worlds.fieldguide.measures import bootstrap
from fanlight_models.worlds.fieldguide.posterior import bayes_rate, believe, intervene, remaining, residual


def figures(count: int | None = None) -> dict[str, object]:
    """Over the first `count` scenes of the test split (default: all). Gains: over pictures that hide four groups or more."""
    scenes = split("test", count)
    begin = time.process_time()
    test = arrays(scenes)
    spent = time.process_time() - begin
    belief = believe(test.values, test.seen)
    some = (~test.seen).sum(1) >= 4
    curves = intervene(test.values[some], test.seen[some], test.species[some])
    concepts, species = (bootstrap(g) for g in curves.gain())
    return {
        "pictures": len(scenes),
        "milliseconds of one core a picture": round(1000 * spent / len(scenes), 2),
        "residual correlation": {f"{a}, {b}": round(r, 3) for (a, b), r in residual(belief).items()},
        "share of covariance that remains, coupled groups": round(remaining(belief, COUPLED), 4),
        "share of covariance that remains, all groups": round(remaining(belief), 4),
        "best accuracy from all concepts": round(bayes_rate(table.sample(40_000, 0)[2]), 4),
        "best accuracy from what can be seen": round(bayes_rate(test.values, test.seen), 4),
        "pictures that hide four groups or more": round(float(some.mean()), 3),
        "hidden groups right after 0, 1, 2, 3 answers, joint": curves.concepts_joint.mean(0).round(3).tolist(),
        "hidden groups right after 0, 1, 2, 3 answers, apart": curves.concepts_apart.mean(0).round(3).tolist(),
        "gain in hidden groups right, with interval": [round(v, 4) for v in concepts],
        "gain in probability of the true species, with interval": [round(v, 4) for v in species],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(figures(), indent=2) + "\n")
