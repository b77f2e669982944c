"""A composer without a model: three analyses of the receipts, each with three options to fix the prompt.

The option that the second analysis recommends fixes three receipts and breaks one.
"""

from __future__ import annotations

from typing import Any

from pytest_loop import AgentReply, AgentRequest

LABELS, LOOK, ANYWHERE = "Labels: `Total`", "Look: after `Date:`", "Look: anywhere"
UNNAMED = ["cases/clinic.txt", "cases/garage.txt", "cases/laundry.txt", "cases/optician.txt", "cases/plumber.txt"]
UNLABELLED = ["cases/grocer.txt", "cases/museum.txt", "cases/parking.txt"]
BROKEN = ["cases/gym.txt"]


def option(name: str, mechanism: str, current: str, proposed: str, improves: list[str], **more: Any) -> dict[str, Any]:
    """Return one option to fix the prompt; without further fields it has a low risk."""
    section = "Total" if current.startswith("Labels") else "Date"
    edit = {"file": "prompt.md", "section": section, "current": current, "proposed": proposed}
    likely = {"improves": improves, "regresses": [], "risk": "low: only adds to a list", "confidence": "high"}
    return {"name": name, "mechanism": mechanism, **edit, **likely, **more}


def analysis(root_cause: str, hypothesis: str, *options: dict[str, Any]) -> dict[str, Any]:
    return {"root_cause": root_cause, "hypothesis": hypothesis, "options": list(options)}


ANALYSES = (
    analysis(
        "The prompt knows one label of the total; invoices of services use others.",
        "With the two other labels, receipts that say them get a total and a currency.",
        option(
            "Name the labels of services",
            "The total is looked for at each label in turn, so a line that begins with a new one is found too.",
            LABELS,
            f"{LABELS}, `Amount due`, `To pay`",
            UNNAMED,
        ),
        option(
            "Name the most frequent one",
            "The total is looked for at each label in turn, so lines that begin with the new one are found.",
            LABELS,
            f"{LABELS}, `Amount due`",
            [name for name in UNNAMED if name not in ("cases/laundry.txt", "cases/plumber.txt")],
        ),
        option(
            "Name labels of other trades as well",
            "The total is looked for at each label in turn, so a line that begins with any of them is found.",
            LABELS,
            f"{LABELS}, `Amount due`, `To pay`, `Balance`, `Sum`",
            UNNAMED,
            risk="medium: `Balance` may be the balance of an account",
            confidence="medium",
        ),
    ),
    analysis(
        "The date is only looked for after its label, and receipts of machines have none.",
        "Looking anywhere finds the date of receipts without the label.",
        option(
            "Look anywhere",
            "The first date of the text is taken, so a label is no longer needed.",
            LOOK,
            ANYWHERE,
            UNLABELLED,
            risk="medium: another date may come first",
        ),
        option(
            "Look anywhere where there is no label",
            "The places are tried in turn, so the first date of the text only counts where no label stands.",
            LOOK,
            f"{LOOK}, then anywhere",
            UNLABELLED,
        ),
        option(
            "Look after the word of one machine",
            "The places are tried in turn, so a date behind the word is found.",
            LOOK,
            f"{LOOK}, `printed`",
            ["cases/parking.txt"],
        ),
    ),
    analysis(
        "The first date of a text is not always that of the receipt.",
        "Where a label stands, the date behind it is the right one.",
        option(
            "Prefer the label",
            "The places are tried in turn, so the first date of the text only counts where no label stands.",
            ANYWHERE,
            f"{LOOK}, then anywhere",
            BROKEN,
        ),
        option(
            "Prefer either label",
            "The places are tried in turn, so both labels come before the first date of the text.",
            ANYWHERE,
            f"{LOOK}, `printed`, then anywhere",
            BROKEN,
        ),
        option(
            "Go back to the label",
            "Only a date behind its label counts, so another date can no longer come first.",
            ANYWHERE,
            LOOK,
            BROKEN,
            regresses=UNLABELLED,
            risk="high: receipts without the label lose their date again",
        ),
    ),
)


def compose(request: AgentRequest) -> AgentReply:
    """Return the analysis of this iteration, or the last one."""
    return AgentReply(data=ANALYSES[min(request.iteration, len(ANALYSES)) - 1])
