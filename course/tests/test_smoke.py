"""Is the course in working order here? Run this first, with pytest or as it is: `python course/tests/test_smoke.py`.

It needs nothing but Wengert and the course, and takes a second or two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import wengert


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `wengert`, which finds the course by its entry points."""
    return subprocess.run([sys.executable, "-I", "-m", "wengert", *arguments], capture_output=True, text=True)


def test_the_lessons_are_there() -> None:
    from wengert import course

    assert [lesson.number for lesson in course.lessons()] == list(range(13))
    assert wengert.course.check is course.check


def test_wengerts_own_class_is_right() -> None:
    assert wengert.course.check(wengert.Value, step=7).right


def test_the_commands_write_a_lesson_and_check_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = command("course", folder, "--solutions")
        assert told.stdout.startswith("13 lessons written"), told.stderr
        (lesson,) = [name for name in os.listdir(folder) if name.startswith("05_")]
        with open(os.path.join(folder, lesson), encoding="utf-8") as file:
            assert json.load(file)["nbformat"] == 4
        told = command("check", os.path.join(folder, lesson), "--step", "5")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "Step 5 is done." in told.stdout


def main() -> None:
    """Run every test above without pytest."""
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name.removeprefix("test_").replace("_", " "))


if __name__ == "__main__":
    main()
