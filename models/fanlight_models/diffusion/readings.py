"""What a model said about one picture, kept so that every contrast of two conditionings is a subtraction and costs no further question.

With y the words in question, c what is given, j a latent pixel, all sums over channels, in nats:

    signed       i_j = 1/2 int d(alpha) E[(eps - eps^(z|c))_j^2 - (eps - eps^(z|y,c))_j^2]        = log p(x|y,c) - log p(x|c), summed over j
    orthogonal   o_j = 1/2 int d(alpha) E[(eps^(z|c) - eps^(z|y,c))_j^2]  >= 0

Signed is exact for this picture if the denoiser is optimal. Orthogonal equals it only on average over pictures drawn from p(x|y,c).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import Law, Sampling
from fanlight_models.diffusion.words import Conditioning

ESTIMATORS = ("signed", "orthogonal")


class NotFinite(ValueError):
    """A network, or a picture, has numbers that are none; the message is a sentence."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An integral over log-SNR from the nodes that are done.

    map, error (h, w): nats per latent pixel and their standard errors. total, total_error: of the picture. alphas, curve (n,): log-SNRs and the
    integrand summed over pixels at each of them, nats per unit of log-SNR. nodes: how many. per_node (n, h, w): the weighted terms, whose
    (weighted) mean is the map."""

    map: Tensor
    error: Tensor
    total: float
    total_error: float
    alphas: Tensor
    curve: Tensor
    nodes: int
    per_node: Tensor


@dataclass(eq=False)
class Readings:
    """Of one latent x under one sampling. `measure.measure` fills it; a key is a conditioning's.

    energies: key -> (K, h, w), squared errors summed over channels, mean over draws. predictions: key -> (K, S, C, h, w). done: key -> (K,) bool.
    attention: key -> (T, h, w), sums over `attended[key]` evaluations. evaluations: how often the model was asked
    about one picture. picture: digest of x, so that answers about two are
    never mixed."""

    sampling: Sampling
    law: Law
    shape: tuple[int, int, int]
    alphas: Tensor
    energies: dict[str, Tensor] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)
    done: dict[str, Tensor] = field(default_factory=dict)
    attention: dict[str, Tensor] = field(default_factory=dict)
    attended: dict[str, int] = field(default_factory=dict)
    evaluations: int = 0
    picture: str = ""

    @classmethod
    def empty(cls, sampling: Sampling, law: Law, shape: tuple[int, int, int]) -> Readings:
        return cls(sampling, law, shape, sampling.alphas(law))

    def claim(self, x: Tensor) -> None:
        """These readings are of this latent. Errors: ValueError where they are of another one, or it holds what is no number."""
        if not bool(torch.isfinite(x).all()):
            raise NotFinite("The latent holds numbers that are not finite; encode the picture again.")
        digest = hashlib.sha256(x.detach().cpu().double().numpy().tobytes()).hexdigest()
        if self.picture not in ("", digest):
            raise ValueError("These readings are of another picture; start new ones.")
        self.picture = digest

    def open(self, key: str, like: Tensor, kept: torch.dtype) -> None:
        """Room for a conditioning, where there is none yet."""
        if key not in self.done:
            nodes, (channels, rows, columns) = self.sampling.nodes, self.shape
            self.energies[key] = torch.zeros(nodes, rows, columns, dtype=like.dtype)
            self.predictions[key] = torch.zeros(nodes, self.sampling.noises, channels, rows, columns, dtype=kept)
            self.done[key] = torch.zeros(nodes, dtype=torch.bool)

    def missing(self, conditionings: Iterable[Conditioning]) -> int:
        """Evaluations that are still to be made for these."""
        none = torch.zeros(self.sampling.nodes, dtype=torch.bool)
        keys = {c.key for c in conditionings}
        return self.sampling.noises * sum(int((~self.done.get(key, none)).sum()) for key in keys)

    def arrays(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Arrays and JSON for a file; `of` is the inverse. Arrays are named by number, because a conditioning's key is free text."""
        keys = sorted(self.done)
        every = {"alphas": self.alphas}
        for n, key in enumerate(keys):
            every |= {
                f"energies.{n}": self.energies[key],
                f"predictions.{n}": self.predictions[key],
                f"done.{n}": self.done[key],
            }
            if key in self.attention:
                every[f"attention.{n}"] = self.attention[key]
        told = {"sampling": asdict(self.sampling), "law": asdict(self.law), "shape": list(self.shape), "keys": keys}
        return every, told | {"attended": self.attended, "evaluations": self.evaluations, "picture": self.picture}

    @classmethod
    def of(cls, every: Mapping[str, Tensor], told: Mapping[str, Any]) -> Readings:
        """Errors: ValueError where arrays are missing or do not fit."""
        how = dict(told["sampling"])
        how["law"] = None if how["law"] is None else Law(**how["law"])
        shape = (int(told["shape"][0]), int(told["shape"][1]), int(told["shape"][2]))
        made = cls(Sampling(**how), Law(**told["law"]), shape, every["alphas"])
        nodes, draws = made.sampling.nodes, made.sampling.noises
        wanted = {"energies": (nodes, *shape[1:]), "predictions": (nodes, draws, *shape), "done": (nodes,)}
        for n, key in enumerate(told["keys"]):
            for name, size in wanted.items():
                found = every.get(f"{name}.{n}")
                if found is None or tuple(found.shape) != size:
                    raise ValueError(
                        f"These readings have no {name} of shape {size} for “{key}”; they were cut or changed."
                    )
                getattr(made, name)[key] = found
            if f"attention.{n}" in every:
                made.attention[key] = every[f"attention.{n}"]
        made.attended, made.evaluations = dict(told["attended"]), int(told["evaluations"])
        made.picture = str(told["picture"])
        return made

    def attention_map(self, conditioning: Conditioning, tokens: Iterable[int]) -> Tensor:
        """(h, w): mean over these rows of attention and over the evaluations so far. Errors: ValueError where none was recorded."""
        key, chosen = conditioning.key, list(tokens)
        if key not in self.attention or not chosen:
            raise ValueError("No attention was recorded for this word; ask for it when the prompt is measured.")
        return self.attention[key][chosen].mean(0) / self.attended[key]

    def contrast(
        self,
        base: Conditioning,
        full: Conditioning,
        estimator: str = "orthogonal",
        band: tuple[float, float] | None = None,
    ) -> Estimate:
        """What `full` says that `base` does not, from what is stored.

        Args: band: log-SNRs that count, low and high; None: all. Low ones are layout, high ones detail.
        Errors: ValueError where fewer than two pairs of nodes are done, or for an unknown estimator."""
        if estimator not in ESTIMATORS:
            raise ValueError(f"“{estimator}” is no estimator. Estimators: {', '.join(ESTIMATORS)}.")
        if estimator == "signed":
            return self.combination({base: 1.0, full: -1.0} if base != full else {base: 0.0}, band)
        nodes = self._nodes(base, full)
        one, other = (self.predictions[c.key][nodes].to(self.energies[c.key].dtype) for c in (base, full))
        return self._estimate(nodes, ((one - other) ** 2).sum(2).mean(1), band)

    def combination(self, weights: Mapping[Conditioning, float], band: tuple[float, float] | None = None) -> Estimate:
        """A sum of energies, each 1/2 int d(alpha) E[(eps - eps^)^2], with these weights; its error knows that the noise is common. Signed
        information is one less another. Errors: ValueError as of `contrast`."""
        nodes = self._nodes(*weights)
        terms = sum(weight * self.energies[c.key][nodes] for c, weight in weights.items())
        assert isinstance(terms, Tensor)
        return self._estimate(nodes, terms, band)

    def _estimate(self, nodes: Tensor, terms: Tensor, band: tuple[float, float] | None) -> Estimate:
        """From squared errors (n, h, w) at these nodes."""
        alphas = self.alphas[nodes]
        inside = torch.ones_like(alphas) if band is None else ((alphas >= band[0]) & (alphas <= band[1])).double()
        integrand = terms * (inside / 2)[:, None, None].to(terms)
        weighted = integrand * self.law.weight(alphas)[:, None, None].to(terms)
        share = self.shares(nodes)[:, None, None].to(terms)
        total, total_error = _mean(weighted.sum((1, 2), keepdim=True), share, self.sampling.stratified)
        mean, error = _mean(weighted, share, self.sampling.stratified)
        return Estimate(
            mean, error, float(total), float(total_error), alphas, integrand.sum((1, 2)), len(nodes), weighted
        )

    def _nodes(self, *conditionings: Conditioning) -> Tensor:
        """The nodes, as whole pairs, that are done for all of these."""
        done = torch.ones(self.sampling.nodes, dtype=torch.bool)
        for c in conditionings:
            done &= self.done.get(c.key, torch.zeros_like(done))
        pairs = done.view(-1, 2).all(1)
        if int(pairs.sum()) < 2:
            raise ValueError("Too little has been computed for this contrast: it takes four log-SNRs of either side.")
        return torch.nonzero(pairs.repeat_interleave(2)).flatten()

    def shares(self, nodes: Tensor) -> Tensor:
        """(n,), mean 1: how many strata a node stands for while not all are done. Each pair of strata goes to the nearest that is done, in
        equal shares where two are."""
        pairs = nodes[::2] // 2
        if not self.sampling.stratified:
            return torch.ones(len(nodes))
        distance = (torch.arange(self.sampling.nodes // 2)[:, None] - pairs).abs()
        nearest = (distance == distance.min(1, keepdim=True).values).double()
        return (
            (nearest / nearest.sum(1, keepdim=True)).sum(0).repeat_interleave(2) * len(pairs) * 2 / self.sampling.nodes
        )


def _mean(terms: Tensor, share: Tensor, stratified: bool) -> tuple[Tensor, Tensor]:
    """Mean over nodes (n, ...) and its standard error. Strata lie in order, and the integrand changes slowly from one to the next: the variance
    is that of differences between neighbouring pairs. The deviation over all nodes would count the shape of the integrand as noise."""
    pairs = (terms * share).reshape(-1, 2, *terms.shape[1:]).mean(1)  # (n / 2, ...)
    count = len(pairs)
    if not stratified:
        return pairs.mean(0), pairs.var(0).div(count).sqrt()
    squares = (pairs[1:] - pairs[:-1]).square().sum(0)
    return pairs.mean(0), (squares / (2 * count * (count - 1))).sqrt()
