from __future__ import annotations

from pathlib import Path

import pytest

from gp_active_sensing.errors import RunError
from gp_active_sensing.web.access import (
    Access,
    WatchOptions,
    is_loopback,
    origin_of_tiles,
    state_folder,
    token_in,
)


def test_a_token_is_kept_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    token = token_in(path)
    assert len(token) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert token_in(path) == token, "after a restart the pages that are open may go on"
    path.unlink()
    assert token_in(path) != token


def test_a_token_that_others_may_know_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    token = token_in(path)
    for mode in (0o644, 0o640, 0o620, 0o610, 0o604, 0o602, 0o601):
        path.chmod(mode)
        with pytest.raises(RunError, match="only you"):
            token_in(path)
    path.chmod(0o600)
    assert token_in(path) == token
    with monkeypatch.context() as other:
        other.setattr("os.getuid", lambda: path.stat().st_uid + 1)
        with pytest.raises(RunError, match="only you"):
            token_in(path)
    path.write_text("a" * 20)
    assert token_in(path) == "a" * 20
    for text in ("a" * 19 + "\n", "é" * 30, "a" * 29 + "é", "a" * 29 + "!"):
        path.write_text(text)
        with pytest.raises(RunError):
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
    assert access.accepts("a" * 32)
    for given in (None, "", "a" * 31, "a" * 33, "é" * 32):
        assert not access.accepts(given)
    assert not Access("").accepts("")


def test_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "boat")
    open_to_all = Access.of_host("0.0.0.0", "", ["rover.lan"])
    loopback = Access.of_host("127.0.0.1", "")
    addresses = ["127.0.0.1:80", "127.0.0.1", "[::1]:80", "localhost:80", "LOCALHOST"]
    names = ["boat:80", "boat.local", "rover.lan:80"]
    strangers = ["evil.example:80", "localhost.evil.example", "", "127.0.0.1.evil.example"]
    strangers += ["evil-localhost", "xboat", "evil.rover.lan", "xrover.lan:80", "boat.evil"]
    strangers += ["[127.0.0.1]evil", "[::1].evil.example", "[::1]:80evil", "[::1]:x80", "[::1]x:80"]
    for host in ("10.0.0.5", "fe80::1", "rover.lan"):
        assert Access.of_host(host, "").host_problem(f"{host}.local"), "only names have a .local"
    assert not any(map(open_to_all.host_problem, addresses + names))
    assert all(map(open_to_all.host_problem, strangers))
    assert not any(map(loopback.host_problem, addresses))
    assert all(map(loopback.host_problem, names + strangers)), "it is reached as localhost only"


def test_origins() -> None:
    host = "127.0.0.1:80"
    for scheme in ("http", "https"):
        assert not Access.origin_problem(f"{scheme}://{host}", host)
    strangers = [
        "null",
        "http://evil.example",
        "http://127.0.0.1:81",
        "file://",
        "http://127.0.0.1",
    ]
    strangers += [f"http://{host}01", f"http://{host}.evil.example", f"http://{host}/x"]
    for origin in (None, *strangers, f"http://evil.example/http://{host}"):
        assert Access.origin_problem(origin, host), origin


def test_loopback() -> None:
    assert all(
        map(is_loopback, (WatchOptions().host, "127.0.0.1", "::1", "localhost", "127.9.9.9"))
    )
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.2", "boat", "::")))


def test_addresses_of_tiles() -> None:
    address = "https://tile.example.org:8080/a/{z}/{x}/{y}.png?key=b"
    assert origin_of_tiles(address) == "https://tile.example.org:8080"
    assert origin_of_tiles("") == ""
    for wrong in (
        "tile.example.org/{z}/{x}/{y}.png",
        "ftp://tile.example.org/{z}/{x}/{y}.png",
        "https://tile.example.org/{z}/{x}.png",
        "https://{x}.example.org/{z}/{x}/{y}.png",
        "https://user@tile.example.org/{z}/{x}/{y}.png",
        "https://tile.example.org; script-src */{z}/{x}/{y}.png",
        "https://tile.example.org/{z}/{x}/{y}.png https://b",
        "https://*/{z}/{x}/{y}.png",
        'https://tile.example.org/{z}/{x}/{y}.png"',
    ):
        with pytest.raises(RunError):
            origin_of_tiles(wrong)
