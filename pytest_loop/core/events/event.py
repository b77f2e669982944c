"""One line of `history.jsonl`, with a typed payload chosen by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field, ValidationError, field_serializer, model_validator

from pytest_loop.core.events import experiment_payloads, run_payloads
from pytest_loop.core.events.run_payloads import OtherPayload, Payload, StepPayload
from pytest_loop.core.model.rules import Phase, Value
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Step

# All classes of payloads. Those with markers come first: a class without markers accepts every payload of its kind.
_PAYLOAD_CLASSES = sorted(
    {
        payload_class
        for module in (experiment_payloads, run_payloads)
        for payload_class in vars(module).values()
        if isinstance(payload_class, type) and issubclass(payload_class, Payload)
    },
    key=lambda payload_class: (not payload_class.markers, payload_class.__name__),
)
_CLASSES_BY_KIND = {
    kind.value: [payload_class for payload_class in _PAYLOAD_CLASSES if payload_class.kind is kind] for kind in Kind
}


def parse_payload(kind: str, data: Mapping[str, Any]) -> Payload:
    """Return the typed payload of an event; an `OtherPayload` if its kind is unknown or its data is invalid."""
    for payload_class in _CLASSES_BY_KIND.get(kind, ()):
        if not payload_class.markers or any(marker in data for marker in payload_class.markers):
            try:
                return payload_class.model_validate(data)
            except ValidationError:
                break
    return OtherPayload.model_validate(data)


class TypedPayload(Value):
    """Parse `payload` into the class that belongs to the kind named `event`."""

    event: str
    payload: Payload = Field(default_factory=OtherPayload)

    @model_validator(mode="before")
    @classmethod
    def _parse_payload(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("payload", {}), dict):
            return data
        return {**data, "payload": parse_payload(str(data.get("event")), data.get("payload", {}))}

    @field_serializer("payload")
    def _dump_payload(self, payload: Payload) -> dict[str, Any]:
        return payload.dump()


class Event(TypedPayload):
    """Something that happened in a run; unknown kinds and keys are kept and ignored."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    ts: str
    run_id: str
    iteration: int
    phase: Phase
    step: str
    status: str = "ok"

    @property
    def kind(self) -> Kind | None:
        """The kind, or None if it is unknown."""
        return self.payload.kind or next((kind for kind in Kind if kind.value == self.event), None)

    @property
    def completes(self) -> Step | None:
        """The step that an event of this kind completes, whatever its payload."""
        classes = _CLASSES_BY_KIND.get(self.event, ())
        return next((payload.completes for payload in classes if issubclass(payload, StepPayload)), None)

    @classmethod
    def create(cls, state: RunState, payload: Payload, ts: str) -> Event:
        """Return the event that records a payload at the current place; a baseline gets iteration 0."""
        return cls(
            ts=ts,
            run_id=state.run_id,
            iteration=0 if payload.is_baseline else state.iteration,
            phase=state.phase,
            step=state.current_step.value,
            event=payload.kind.value if payload.kind else "",
            status="error" if payload.is_error else "ok",
            payload=payload,
        )
