"""The curriculum sampler: groups with variance come back, the others make room, difficulty follows success."""

from hypothesis import given
from hypothesis import strategies as st

from generators.sampler import CurriculumSampler, has_signal, with_signal

TASKS = {f"t{i}": 1 + i % 3 for i in range(30)}


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=8))
def test_a_group_has_signal_exactly_when_its_advantages_do(rewards: list[float]) -> None:
    mean = sum(rewards) / len(rewards)
    assert has_signal(rewards) == any(abs(r - mean) > 1e-9 for r in rewards)


def test_only_groups_with_variance_are_kept() -> None:
    groups = [("a", [0, 1, 0]), ("b", [1, 1, 1]), ("c", [0, 0, 0]), ("d", [-0.5, 0, 0]), ("e", [])]
    assert with_signal(groups) == ["a", "d"]


def test_batches_start_easy_and_do_not_repeat_a_task() -> None:
    batch = CurriculumSampler(TASKS).draw(8)
    assert len(set(batch)) == 8
    assert {TASKS[t] for t in batch} == {1}
    assert CurriculumSampler(TASKS).draw(8) == batch
    assert CurriculumSampler(TASKS, seed=1).draw(8) != batch


def test_solved_tasks_rest_and_varied_ones_come_back() -> None:
    sampler = CurriculumSampler(TASKS, replay=50, promote_at=2.0)
    first = sampler.draw(4)
    sampler.record(first[0], [0, 1, 1, 0])
    for task in first[1:]:
        sampler.record(task, [1, 1, 1, 1])
    later = [sampler.draw(4) for _ in range(5)]
    assert any(first[0] in batch for batch in later)
    assert not any(task in batch for batch in later for task in first[1:])


def test_known_tasks_with_variance_fill_the_batch_once_the_fresh_ones_are_used_up() -> None:
    sampler = CurriculumSampler({f"t{i}": 1 for i in range(8)}, promote_at=2.0)
    for task in sampler.draw(8):
        sampler.record(task, [0, 1])
    sampler.draw(1)
    batch = sampler.draw(8)
    assert len(set(batch)) == 8


def test_success_raises_the_difficulty() -> None:
    sampler = CurriculumSampler(TASKS, window=4)
    for task in sampler.draw(4):
        sampler.record(task, [1, 1, 0, 1])
    assert sampler.level == 2
    assert {TASKS[t] for t in sampler.draw(4)} & {2}
