"""A class of attackers and honest students is graded in one run; then each is looked at."""

import os
from pathlib import Path

import pytest

from tests.attacks.graded_class import FULL, HONEST, TITLES, GradedClass


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    before = Path.cwd()
    yield GradedClass(tmp_path_factory.mktemp("course"))
    os.chdir(before)
    os.environ.pop("PROOFLM_SECRET", None)


@pytest.mark.parametrize("student", HONEST)
def test_honest_work_keeps_full_marks_in_the_same_run(graded, student):
    assert graded.scores[student] == FULL


@pytest.mark.parametrize("student", TITLES, ids=lambda student: f"{student}: {TITLES[student]}")
class TestAttack:
    def test_is_graded_and_earns_no_more_than_empty_work(self, graded, student):
        assert graded.was_graded(student)
        assert graded.scores[student] == 0

    def test_shows_no_secret(self, graded, student):
        assert not graded.shows_secrets(student)

    def test_leaves_a_page_that_runs_nothing(self, graded, student):
        assert not graded.has_live_page(student)


def test_nothing_is_left_running(graded):
    assert graded.left_running() == []


def test_nothing_was_written_outside(graded):
    assert graded.written_outside() == []


def test_there_are_two_hundred_attacks():
    assert len(TITLES) >= 200
