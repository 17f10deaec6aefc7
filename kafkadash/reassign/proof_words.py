"""How far a plan is from the least that has to move, in words: the same on the wizard's page and on the review page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.domain.planner.request import Proof
from kafkadash.domain.wording import count, size
from kafkadash.reassign.models import PlanReport

_RULE = "least movement"
"""The checker's, which holds the prices of the proof against the cluster."""


@dataclass(frozen=True, slots=True)
class ProofWords:
    """``badge``: what is proven, '' where it is not quite. ``figures``: (what, bytes in words), to stand in a row.

    ``verified``: by the checker, which knows nothing of how the plan was made.
    """

    badge: str
    sentence: str
    figures: Sequence[tuple[str, str]]
    verified: bool


def proof_words(report: PlanReport, aim: str) -> ProofWords | None:
    """Of a stored report; None where nothing is proven, as rows were brought or only their order changes.

    ``aim`` goes on after "no plan that": "drains broker 3".
    """
    if report.proof is None:
        return None
    proof = Proof.from_json(report.proof)
    figures = [
        ("this plan", _about(proof, proof.moved)),
        ("lower bound", _about(proof, proof.lowest)),
        ("gap", size(max(0, proof.moved - proof.lowest))),
    ]
    if report.generate_bytes is not None:
        figures.append(("Kafka’s own generate would move", size(report.generate_bytes)))
    return ProofWords(
        badge="Proven least movement" if proof.exact else "",
        sentence=_sentence(proof, f"no plan that {aim} under these limits moves less"),
        figures=figures,
        verified=any(name == _RULE and passed is True for name, passed, *_ in report.rules),
    )


def _sentence(proof: Proof, none_less: str) -> str:
    ratio = proof.ratio
    if ratio is None:
        return "How far that is from the least is not known: the lower bound is 0 B."
    unknown = ""
    if proof.estimated:
        sizes = count(proof.estimated, "partition")
        unknown = f"With {sizes} of unknown size taken to be as large as others of their topic, "
    if ratio <= 1:
        said = f"{unknown}{none_less}."
    else:
        above = 100 * (ratio - 1)
        share = f"at most {above:.1f} %" if above >= 0.05 else "less than 0.1 %"
        said = f"{unknown}{none_less} than {size(proof.lowest)}: this one is {share} above that."
    return said[:1].upper() + said[1:]


def _about(proof: Proof, number: int) -> str:
    return f"about {size(number)}" if proof.estimated else size(number)
