"""Write constraints.txt: every version that pip resolves from requirements.txt for the oldest Python we support.

    python -m tools.lock                    (make lock)

Resolving for 3.11.0, whatever 3.11 is running, keeps the lock usable on distributions that ship an early 3.11.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = "3.11.0"
HEADER = "# Every version that `make lock` resolved from requirements.txt. Do not edit.\n"


def resolve(requirements: Path) -> list[str]:
    """`name==version` for everything an installation of `requirements` would install, sorted by name.

    Raises subprocess.CalledProcessError, after pip has said why, if there is no solution.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--report", str(report)]
        target = ["--python-version", OLDEST_PYTHON, "--only-binary=:all:", "--target", folder]
        subprocess.run([*pip, *target, "--quiet", "-r", str(requirements)], check=True)
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    pairs = [(item["metadata"]["name"], item["metadata"]["version"]) for item in installed]
    # A local label such as +cpu names a build, not a version.
    return [f"{name}=={version.partition('+')[0]}" for name, version in sorted(pairs, key=lambda p: p[0].lower())]


def main() -> int:
    if sys.version_info[:2] != (3, 11):
        print("make lock: run it with Python 3.11, whose markers the lock is resolved for", file=sys.stderr)
        return 1
    try:
        lines = resolve(ROOT / "requirements.txt")
    except subprocess.CalledProcessError as error:
        return error.returncode
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"constraints.txt: {len(lines)} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
