"""Groups of cases: as much work as a task should have."""

from raterscope.app.batch.cohort import Attempt, CaseQueue
from raterscope.app.batch.manifest import Case
from raterscope.app.batch.task import GroupRecord


def a_queue(count):
    return CaseQueue([Case(str(number), "labels", (), "majority") for number in range(count)])


def test_groups_have_the_seconds_that_are_wanted_and_shrink_towards_the_end():
    queue = a_queue(1000)
    sizes = [len(queue.take(4, 3.0))]
    queue.update_seconds(GroupRecord((None,), 0.1))
    while queue:
        sizes.append(len(queue.take(4, 3.0)))
    assert sizes[:3] == [1, 30, 30]
    assert sizes[-4:] == [1, 1, 1, 1]
    assert sizes[1:] == sorted(sizes[1:], reverse=True)
    assert sum(sizes) == 1000


def test_a_case_that_may_kill_its_worker_is_in_no_group():
    queue = a_queue(40)
    queue.update_seconds(GroupRecord((None,), 0.1))
    group = queue.take(2, 1.0)
    queue.put_back(group, alone=True)
    groups = []
    while queue:
        groups.append(queue.take(2, 1.0))
    alone = [one for one in groups if any(entry.alone for entry in one)]
    assert alone == [[Attempt(entry.case, 1, True)] for entry in group]
    assert sorted(int(entry.case.name) for one in groups for entry in one) == list(range(40))
