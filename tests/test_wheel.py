"""The wheel holds nothing but `bridge`, and works outside of the checkout with what it brings."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that git would make, in a folder named as the package."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "bridge"
    copy.mkdir()
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if files.returncode:
        pytest.skip("this is no git checkout")
    archive = ["tar", "--create", "--file=source.tar", f"--directory={ROOT}", "--null", "--files-from=-"]
    subprocess.run(archive, cwd=folder, input=files.stdout, check=True)
    subprocess.run(["tar", "--extract", "--file=../source.tar"], cwd=copy, check=True)
    return copy


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    """Build it, with the build tools of this environment."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        "../wheel",
        ".",
    ]
    done = subprocess.run(build, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return next(checkout.parent.glob("wheel/*.whl"))


def test_beside_the_checkout_an_editable_installation_is_found_not_its_folder(checkout: Path) -> None:
    build = "from setuptools.build_meta import build_editable; print(build_editable('..'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=checkout, capture_output=True, text=True, check=True
    )
    beside = checkout.parent
    with zipfile.ZipFile(beside / done.stdout.split()[-1]) as archive:
        archive.extractall(beside / "site")
    find = "import sys, site; sys.path.insert(0, ''); site.addsitedir('site')"
    find += "; import bridge; print(bridge.__file__)"
    done = subprocess.run(
        [sys.executable, "-IS", "-c", find], cwd=beside, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == checkout / "bridge" / "__init__.py"


def test_it_holds_nothing_but_bridge(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"bridge", f"{wheel.name.split('-py')[0]}.dist-info"}
    for brought in (
        *("policies/rlschert.py", "data/platforms/sp2-128.xml", "data/workloads/bundled-128.swf.gz"),
        *("data/zoo/mrsch-s4/weights.safetensors", "report/page/page.html.j2", "py.typed"),
    ):
        assert f"bridge/{brought}" in names


def test_it_works_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    plain = {"PYTHONPATH": str(place), "NUMBA_DISABLE_JIT": "1", "PYTHONSAFEPATH": "1"}

    def bridge(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bridge", *words],
            cwd=tmp_path,
            env=os.environ | plain,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    where = f"import bridge; assert bridge.__file__.startswith({str(place)!r}), bridge.__file__"
    subprocess.run([sys.executable, "-c", where], cwd=tmp_path, env=os.environ | plain, check=True)
    assert '"jobs.total": 20' in bridge("replay", "bundled-128", "--first", "20", "--json")
    assert "rlschert" in bridge("policies")
    agent = "import bridge; assert bridge.load_agent('zoo/sem-theta').recipe.name == 'sem'"
    subprocess.run([sys.executable, "-c", agent], cwd=tmp_path, env=os.environ | plain, check=True)
    platform = place / "bridge" / "data" / "platforms" / "sp2-128.xml"
    bridge("platform", "check", str(platform))
