"""Joints on many processes: the bits of one at every step, whichever of them moves which group, and after a restart with another number of processes."""

import pytest
from test_ranks import check, pytestmark, states  # noqa: F401, the mark says when there is no MPI

PROGRAM = "joint_ranks_program.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return states(tmp_path_factory, "machine", "chain", "vehicle", program=PROGRAM)


@pytest.mark.parametrize(
    ("scene", "size"),
    [("machine", 2), ("machine", 3), ("machine", 4), ("chain", 3), ("vehicle", 4)],
)
def test_joined_bodies_have_the_bits_of_one_process_at_every_step(found, scene, size):
    check(found[scene], size)


@pytest.mark.parametrize(
    ("scene", "way"), [("machine", "2 to 3"), ("machine", "3 to 1"), ("chain", "3 to 2"), ("vehicle", "4 to 1")]
)
def test_what_some_processes_saved_goes_on_with_others_and_with_one(found, scene, way):
    late = found[scene][way]
    assert late == found[scene]["1"][-len(late) :]


@pytest.mark.parametrize("scene", ["machine", "chain", "vehicle"])
def test_checkpoint_and_frame_of_many_are_those_of_one(found, scene):
    alone, *shared = found[scene]["saved"]
    assert alone.pop("order")  # in the memory of one process; of many there is none
    assert all(tables == alone for tables in shared)


def test_groups_touched_and_went_on_their_own(found):
    alone, both = zip(*(told[-1] for told in found["machine"]["1"]))
    assert max(alone) > 4 and max(both) > 2
