"""`palaver profiles`: the list, the reset policy of a profile, and its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from web.test_attachments import make_png

if TYPE_CHECKING:
    from pathlib import Path

    from cli.conftest import Home


def test_profiles_are_listed_with_when_their_conversations_restart(home: Home) -> None:
    assert "No profiles yet." in home.get_text("profiles", "list")
    home("config", "set", "profiles.work.title", "Work", "profiles.work.session_reset.mode", "idle")
    home("config", "set", "profiles.work.session_reset.idle_minutes", "120", "profiles.diary.description", "My days")
    lines = home.get_text("profiles", "list").splitlines()
    assert lines[2].split()[:2] == ["work", "Work"]
    assert "after 2 hours without messages" in lines[2]
    assert lines[1].split() == ["diary", "My", "days"]
    listed = {each["name"]: each for each in home.get_json("profiles", "list")["profiles"]}
    assert (listed["work"]["title"], listed["work"]["session_reset"]["idle_minutes"]) == ("Work", 120)
    assert listed["diary"]["session_reset"] is None


def test_a_picture_is_set_removed_and_refused_with_the_reason(home: Home, tmp_path: Path) -> None:
    home("config", "set", "profiles.work.title", "Work")
    face, fake, large, text = (tmp_path / name for name in ("face.png", "fake.gif", "large.png", "text.txt"))
    face.write_bytes(make_png())
    fake.write_bytes(make_png())
    large.write_bytes(make_png() + bytes(60_000))
    text.write_text("hello")
    assert home.get_text("profiles", "picture", "work", str(face)) == "The picture of work was set.\n"
    [profile] = home.get_json("profiles", "list")["profiles"]
    assert profile["picture"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert "a PNG, JPEG, WebP or GIF picture" in home("profiles", "picture", "work", str(fake), code=1).stderr
    assert "60,067 bytes" in home("profiles", "picture", "work", str(large), code=2).stderr
    assert "text.txt is not a PNG" in home("profiles", "picture", "work", str(text), code=2).stderr
    assert "Give a FILE, or --remove." in home("profiles", "picture", "work", code=2).stderr
    assert "(known: work)" in home("profiles", "picture", "play", str(face), code=3).stderr
    assert home.get_json("profiles", "picture", "work", "--remove") == {"profile": "work", "has_picture": False}
    assert home.get_json("profiles", "list")["profiles"][0]["picture"] is None
