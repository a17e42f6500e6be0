"""Write the student edition: lessons, released assignments and package, without sources and grading.

    python -m tools.bundle dist/ProofLM-student        (a folder, and an archive of it beside it)

It sets itself up with the same two commands as the repository.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["course", "release", "proof_lm", "labconfig", "docs/figures"]
READ = ["docs/training.md", "docs/speed.md"]  # what README.md and lessons point at
FILES = [*READ, "Makefile", "constraints.txt", "pyproject.toml", "LICENSE", ".gitignore", ".gitattributes"]
EXTRAS = ["course", "training", "test"]
README_LEAVES_OUT = ["Instructors", "Contributors"]


def write_bundle(target: Path, root: Path = ROOT) -> None:
    """Write the student edition of the checkout `root` to `target`, which must not exist.

    Raises FileExistsError if `target` exists, FileNotFoundError if the release has not been made.
    """
    if not any(root.glob("release/*/*.ipynb")):
        raise FileNotFoundError("release/ holds no assignment: run make release first")
    target.mkdir(parents=True)
    for file in tracked(root, FOLDERS + FILES):
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target / file)
    (target / "requirements.txt").write_text(student_requirements(root), encoding="utf-8")
    (target / "README.md").write_text(student_readme(root), encoding="utf-8")


def tracked(root: Path, paths: list[str]) -> list[Path]:
    """The files under `paths` that git knows, so that nothing private slips in."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=root, check=True, capture_output=True, text=True
    )
    return [Path(name) for name in listed.stdout.split("\0") if name]


def student_requirements(root: Path) -> str:
    """The lines of requirements.txt that the student extras of pyproject.toml name, in the same order."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = sum((extras[name] for name in EXTRAS), project["dependencies"])
    names = {canonicalize_name(Requirement(text).name) for text in wanted}
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    kept = [line for line in pins if canonicalize_name(Requirement(line).name) in names]
    if len(kept) != len(names):
        raise ValueError(f"requirements.txt: expected a pin for each of {sorted(names)}")
    return "\n".join(["# The student edition; constraints.txt locks what these pull in.", *kept, ""])


def student_readme(root: Path) -> str:
    """README.md without the sections that are not for students."""
    sections = re.split(r"^(?=## )", (root / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    left_out = [f"## {title}\n" for title in README_LEAVES_OUT]
    if missing := [title for title in left_out if not any(section.startswith(title) for section in sections)]:
        raise ValueError(f"README.md: no section {missing[0].strip()!r} to leave out")
    return "".join(section for section in sections if not section.startswith(tuple(left_out)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tools.bundle", description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    target = parser.parse_args(arguments).target
    shutil.rmtree(target, ignore_errors=True)
    try:
        write_bundle(target)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"{ROOT} is no git checkout, which says what belongs to the course: {error.stderr}", file=sys.stderr)
        return 1
    archive = shutil.make_archive(str(target), "zip", root_dir=target.parent, base_dir=target.name)
    print(f"student edition: {target}/ and {archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
