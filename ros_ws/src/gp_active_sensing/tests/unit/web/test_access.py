from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.web.access import Access, is_loopback, state_folder, token_in


def test_a_token_is_kept_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    token = token_in(path)
    assert len(token) >= 20
    assert path.stat().st_mode & 0o777 == 0o600
    assert token_in(path) == token, "after a restart the pages that are open may go on"
    path.unlink()
    assert token_in(path) != token


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.chmod(0o644), "expected a file that only you can read"),
        (lambda path: path.write_text("short\n"), "expected a token of 20 letters"),
        (lambda path: path.write_text("é" * 30), "expected a token of 20 letters"),
    ],
)
def test_a_token_that_others_may_know_is_refused(tmp_path: Path, make, message: str) -> None:
    path = tmp_path / "token"
    token_in(path)
    make(path)
    with pytest.raises(RunError, match=message):
        token_in(path)


def test_a_token_cannot_be_led_elsewhere(tmp_path: Path) -> None:
    token_in(tmp_path / "mine")
    (tmp_path / "token").symlink_to(tmp_path / "mine")
    with pytest.raises(RunError, match="cannot read or write the token"):
        token_in(tmp_path / "token")


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "gp_active_sensing"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder().parts[-3:] == (".local", "state", "gp_active_sensing")


def test_only_the_token_is_known() -> None:
    access = Access("a" * 32)
    assert access.knows("a" * 32)
    for given in (None, "", "a" * 31, "a" * 33, "é" * 32):
        assert not access.knows(given)
    assert not Access("").knows("")


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("127.0.0.1:80", True),
        ("127.0.0.1", True),
        ("[::1]:80", True),
        ("localhost:80", True),
        ("LOCALHOST", True),
        ("boat:80", True),
        ("boat.local", True),
        ("rover.lan:80", True),
        ("evil.example:80", False),
        ("localhost.evil.example", False),
        ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_hosts(host: str, fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "boat")
    access = Access.of_host("0.0.0.0", "", ["rover.lan"])
    problem = access.host_problem(host)
    assert (not problem) is fine
    assert fine or "--allow-host" in problem


def test_origins() -> None:
    assert not Access.origin_problem("http://127.0.0.1:80", "127.0.0.1:80")
    assert "no Origin" in Access.origin_problem(None, "127.0.0.1:80")
    for origin in ("null", "http://evil.example", "http://127.0.0.1:81", "file://"):
        assert "came from" in Access.origin_problem(origin, "127.0.0.1:80")


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "::1", "localhost", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.2", "boat", "::")))
