"""Pairs of made sentences: the same event told in two ways, or two events that are hard to tell apart."""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from scena import PipelineMode, RandomAccessGenerator, Sample

from .params import MadeParams

T = TypeVar("T")

PEOPLE = ("the teacher", "the doctor", "the painter", "the farmer", "the lawyer", "the singer", "the baker", "the pilot",
          "the mayor", "the nurse", "the driver", "the student", "the cook", "the judge", "the writer", "the sailor",
          "the gardener", "the engineer", "the actor", "the soldier")  # fmt: skip
THINGS = ("a bicycle", "an old piano", "a small house", "a red car", "a wooden table", "a gold watch", "a warm coat", "a camera",
          "a fishing boat", "a book about stars", "a silver ring", "a leather bag", "a guitar", "a blue lamp", "a telescope",
          "a Chinese vase")  # fmt: skip
OTHER_PEOPLE = (
    "the plumber",
    "the queen",
    "the scientist",
    "the waiter",
    "the dancer",
    "the reporter",
    "the priest",
    "the tailor",
)
OTHER_THINGS = ("a violin", "a green tent", "a mirror", "a pair of shoes", "a large suitcase", "an antique clock")
TO_THINGS = (("bought", "purchased"), ("sold",), ("repaired", "fixed", "mended"), ("lost", "mislaid"), ("broke", "damaged"),
             ("stole",), ("hid", "concealed"), ("cleaned", "washed"), ("found", "discovered"), ("admired",))  # fmt: skip
TO_PEOPLE = (("helped", "assisted", "supported"), ("thanked",), ("called", "phoned", "telephoned"), ("met", "encountered"),
             ("blamed", "accused"), ("deceived", "fooled", "tricked"), ("praised", "commended"), ("followed", "pursued"),
             ("insulted", "offended"), ("rescued", "saved"))  # fmt: skip
PARTICIPLES = {"broke": "broken", "stole": "stolen", "hid": "hidden"}
"""Of the verbs whose participle is not their past tense."""
TIMES = (
    "on Monday",
    "on Friday",
    "last week",
    "yesterday",
    "this morning",
    "in the summer",
    "two days ago",
    "in March",
    "after dinner",
)
FORMS = (
    "{agent} {verb} {patient} {time}.",
    "{time}, {agent} {verb} {patient}.",
    "{patient} was {participle} by {agent} {time}.",
    "{time}, {patient} was {participle} by {agent}.",
    "it was {agent} who {verb} {patient} {time}.",
    "it was {patient} that {agent} {verb} {time}.",
)


@dataclass(frozen=True)
class Event:
    """Who did what to whom, and when. The verb is a group of words of the same meaning."""

    agent: str
    verbs: tuple[str, ...]
    patient: str
    time: str


class MadePairs(RandomAccessGenerator[MadeParams]):
    """A pair for each index, half of them the same; what is validated speaks of other people and things."""

    def __len__(self) -> int:
        return self.params.count if self.mode == PipelineMode.TRAINING else max(1, self.params.count // 10)

    def __getitem__(self, index: int) -> Sample:
        training = self.mode == PipelineMode.TRAINING
        rng = np.random.default_rng([0 if training else 1, index])
        people, things = (PEOPLE, THINGS) if training else (OTHER_PEOPLE, OTHER_THINGS)
        event = make_event(rng, people, things)
        same = int(rng.integers(2))
        other = event if same else change_event(event, rng, people, things)
        forms = rng.choice(len(FORMS), size=2, replace=False)
        first, second = tell(event, FORMS[forms[0]], rng), tell(other, FORMS[forms[1]], rng)
        return Sample(inputs=(first, second), targets=same, meta=f"{first} | {second}")


def make_event(rng: np.random.Generator, people: tuple[str, ...], things: tuple[str, ...]) -> Event:
    """Any event; half of them are between two people."""
    one, two = (people[place] for place in rng.choice(len(people), size=2, replace=False))
    time = _any(rng, TIMES)
    if rng.random() < 0.5:
        return Event(one, TO_PEOPLE[rng.integers(len(TO_PEOPLE))], two, time)
    return Event(one, TO_THINGS[rng.integers(len(TO_THINGS))], _any(rng, things), time)


def change_event(event: Event, rng: np.random.Generator, people: tuple[str, ...], things: tuple[str, ...]) -> Event:
    """An event that differs in one point: the time, the verb, somebody, or who did it to whom."""
    between_people = event.verbs in TO_PEOPLE
    what = rng.integers(4)
    if what == 0 and between_people:
        return replace(event, agent=event.patient, patient=event.agent)
    if what == 1:
        return replace(event, time=_other(rng, TIMES, event.time))
    if what == 2:
        verbs = TO_PEOPLE if between_people else TO_THINGS
        return replace(event, verbs=_other(rng, verbs, event.verbs))
    if between_people:
        others = tuple(person for person in people if person != event.agent)
        return replace(event, patient=_other(rng, others, event.patient))
    return replace(event, patient=_other(rng, things, event.patient))


def tell(event: Event, form: str, rng: np.random.Generator) -> str:
    """The event as a sentence of this form, with any of the words for its verb."""
    verb = _any(rng, event.verbs)
    text = form.format(
        agent=event.agent, verb=verb, participle=PARTICIPLES.get(verb, verb), patient=event.patient, time=event.time
    )
    return text[0].upper() + text[1:]


def _any(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[rng.integers(len(choices))]


def _other(rng: np.random.Generator, choices: tuple[T, ...], than: T) -> T:
    left = [choice for choice in choices if choice != than]
    return left[rng.integers(len(left))]
