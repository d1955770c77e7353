"""What the demo says before anything is started, and what it shows at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing_bench import demo


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["demo", *words])
    return demo.main()


def test_without_ros_it_says_so_and_runs_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_why_no_ros", lambda: "ROS 2 is not found: install it")
    for number in (1, 2):
        assert run(monkeypatch, "--scenario", "line", "--budget", "2") == 0
        said = capsys.readouterr().out
        assert "Without ROS nodes: ROS 2 is not found: install it" in said
        assert "2/2 places" in said
        folder = tmp_path / "runs" / f"demo-line-{number:03d}"
        assert f"records: {folder}" in said
        assert (folder / "records.jsonl").is_file()


def test_wrong_use_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--budget", "0") == 2
    assert run(monkeypatch, "--scenario", "lime") == 1
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert run(monkeypatch, "--scenario", "line", "--out", str(tmp_path / "full")) == 1
    assert run(monkeypatch, "--out", str(tmp_path / "full" / "notes.txt")) == 1
    said = capsys.readouterr().err
    assert "Did you mean 'line'?" in said
    assert said.count("is not an empty directory; give another one with --out") == 2
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_an_interrupted_engine_ends_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_scenario", interrupted)
    out = str(tmp_path / "run")
    assert run(monkeypatch, "--scenario", "line", "--no-ros", "--out", out) == 130
    assert "interrupted" in capsys.readouterr().err
