"""Folders of a learning process: other files stay, two processes have two folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gp_active_sensing.errors import ConfigError, RunError
from gp_active_sensing_learning.checkpoint_directory import NAME, workplace
from tests.cases import for_each


def begun(checkpoint: Path, *, done: bool = False) -> None:
    checkpoint.mkdir(parents=True, exist_ok=True)
    (checkpoint / "signature.json").write_text("{}", encoding="utf-8")
    if done:
        (checkpoint / "group-000.npz").write_bytes(b"")


def listed(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def ended_by(error: BaseException, folder: Path, *, resume: bool = False) -> None:
    """Begin a learning process that ends with an error after its first group."""

    def learn() -> None:
        with workplace(folder, resume=resume) as place:
            begun(place.checkpoint, done=True)
            raise error

    with pytest.raises(type(error)):
        learn()


def test_the_files_of_a_user_stay(tmp_path: Path) -> None:
    mine = ["rows-inputs.npy", "rows-1/rows-outputs.npy", "signature.json", "group-000.npz"]
    for name in mine:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine", encoding="utf-8")
    before = listed(tmp_path)
    with workplace(tmp_path, resume=False) as place:
        begun(place.checkpoint)
        (place.rows / "rows-inputs.npy").write_bytes(b"")
        assert place.checkpoint.parent == tmp_path
    for name in mine:
        assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert listed(tmp_path) == before


def test_a_folder_that_was_made_goes(tmp_path: Path) -> None:
    with workplace(tmp_path / "a" / "b", resume=False):
        pass
    assert listed(tmp_path) == ["a"]
    ended_by(ConfigError("no"), tmp_path / "a" / "b")
    assert listed(tmp_path) == ["a"]


def test_what_is_left_to_do_stays(tmp_path: Path) -> None:
    ended_by(KeyboardInterrupt(), tmp_path)
    left = [NAME, f"{NAME}/group-000.npz", f"{NAME}/signature.json"]
    assert listed(tmp_path) == left
    with pytest.raises(RunError, match="holds a learning that was begun; go on with --resume"):
        workplace(tmp_path, resume=False).__enter__()
    ended_by(ConfigError("other rows"), tmp_path, resume=True)
    assert listed(tmp_path) == left
    with workplace(tmp_path, resume=True):
        pass
    assert not tmp_path.exists()


def test_another_that_is_going_on(tmp_path: Path) -> None:
    with workplace(tmp_path, resume=False) as place:
        begun(place.checkpoint, done=True)
        for resume in (False, True):
            with pytest.raises(RunError, match="another learning is going on in it"):
                workplace(tmp_path, resume=resume).__enter__()
        assert place.rows.is_dir()


KILLED = """
import os, signal, sys
from pathlib import Path
from gp_active_sensing_learning.checkpoint_directory import workplace

with workplace(Path(sys.argv[1]), resume=False) as place:
    (place.rows / "rows-inputs.npy").write_bytes(b"rows")
    if len(sys.argv) > 2:
        (place.checkpoint / "signature.json").write_text("{}")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@for_each("more", [["begun"], []])
def test_rows_of_a_killed_process_go(tmp_path: Path, more: list[str]) -> None:
    """Rows also go if the process was killed before its checkpoint; the next one starts anew."""
    folder = tmp_path / "kept"
    subprocess.run([sys.executable, "-c", KILLED, str(folder), *more], check=False)
    assert len(list((folder / NAME).glob("rows-*/rows-inputs.npy"))) == 1
    with workplace(folder, resume=bool(more)) as place:
        assert list((folder / NAME).glob("rows-*")) == [place.rows]
    assert not list((folder / NAME).glob("rows-*"))


def test_nothing_to_resume(tmp_path: Path) -> None:
    (tmp_path / "signature.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match="nothing to resume"):
        workplace(tmp_path, resume=True).__enter__()
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match="cannot make the folder"):
        workplace(file, resume=False).__enter__()
    assert file.read_text(encoding="utf-8") == "mine"
