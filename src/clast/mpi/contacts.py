"""Contacts as a library call on many processes: each looks at its part of the boxes of a scene that all have described."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..narrow import by_boxes, contacts
from ..scene.scene import Scene
from ..signatures import Function
from ..tables import Contacts, empty_contacts
from . import team

FEW = 20_000  # bodies: of fewer each process finds all contacts itself, before it would have told others of its part
BOXES = 8  # for each process: where contacts are uneven, boxes are not, and their mean is more even


def like(original: Function) -> Callable[[Callable], Function]:
    """`functools.wraps`, for a function with the very same arguments; type checkers then know them."""
    wraps: Any = functools.wraps(original)
    return wraps


@like(by_boxes.contacts_by_boxes)
def contacts_by_boxes(scene, **how):
    everyone = None if "share" in how else team.find()
    if everyone is None:
        return by_boxes.contacts_by_boxes(scene, **how)
    found = by_boxes.contacts_by_boxes(scene, share=(everyone.rank, everyone.size), **how)
    compare(everyone, "contacts_by_boxes", scene, how)
    return found


def compare(everyone, name, scene, how):
    """Refuse to go on if processes call this function for different scenes or with other arguments; one that is alone says so after a while."""
    everyone.meet(name)
    asked = {key: repr(value) for key, value in sorted(how.items())}
    everyone.compare(f"{name}: the processes ask for different contacts", asked, "pass the same arguments on all")
    tables, attributes = scene.describe(bodies=False)
    everyone.compare_scenes({"bodies": scene.count}, tables | {"bodies": scene.bodies._asdict()}, attributes)


@like(contacts.find_contacts)
def find_contacts(scene, **how):
    whole = how.get("pairs") is not None or not isinstance(scene, Scene) or len(scene.bodies.number) < FEW
    # Processes are looked for only where they are needed: one alone may ask for the contacts of a few.
    everyone = None if whole else team.find()
    if everyone is None:
        return contacts.find_contacts(scene, **how)
    margin, *asked = contacts.checked(scene, **how | {"sort": True})
    compare(everyone, "find_contacts", scene, how)
    limit = max(1, len(scene.bodies.number) // (BOXES * everyone.size))
    boxes = list(by_boxes.boxes_of(scene, margin, tuple(asked), limit, (everyone.rank, everyone.size), crowded=True))
    mine = Contacts(*(np.concatenate(column) for column in zip(*boxes))) if boxes else empty_contacts(0)
    both = Contacts(*(everyone.join(column) for column in mine))
    # A pair is in one box, where its shapes and points stand in their order; boxes are sorted, and this sort finds rows of sorted ones.
    one, two = both.pair.T
    return contacts.select(both, np.argsort(one * (two.max(initial=0) + 1) + two, kind="stable"))
