"""docs/attack-table.md lists every attack that there is, and none that landed."""

import re
from pathlib import Path

from tests.attacks.graded_class import TITLES

PAGE = (Path(__file__).parents[1] / "docs" / "attack-table.md").read_text(encoding="utf-8")


def test_every_attack_stands_in_the_table_and_none_landed():
    rows = re.findall(r"^\| (\w+-\d+) \| (.+) \| yes \| 0 \| none \| no \|$", PAGE, re.MULTILINE)
    assert dict(rows) == TITLES, "stale: run python -m tools.attack_table"


def test_numbers_of_kinds_add_up():
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| (\d+) \| (\d+) \| 0 \| 0 \| 0 \|$", PAGE, re.MULTILINE)
    assert sum(int(count) for _, count, _ in rows) == sum(int(graded) for _, _, graded in rows) == len(TITLES)


def test_honest_work_kept_its_points_in_that_run():
    assert "3 of 3 kept all" in PAGE and "left running: 0." in PAGE
