"""Downloads are checked, resumed, and unpacked; a server on this machine stands for the web."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import shutil
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text import download
from fairseq_stack_preprocess.text.download import Archive, obtain

MEMBERS = {"training/a.de": "Hund\n" * 60_000, "training/a.en": "dog\n" * 60_000, "other": "not wanted"}


@dataclass
class Web:
    """A server's content and conduct, and the ranges that were asked for."""

    url: str = ""
    content: dict[str, bytes] = field(default_factory=dict)
    resumes: bool = True
    breaks_after: int | None = None
    ranges: list[str | None] = field(default_factory=list)


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, web: Web, *arguments: Any) -> None:
        self.web = web
        super().__init__(*arguments)

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.web.ranges.append(wanted)
        body = self.web.content.get(self.path)
        if body is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.web.resumes else 0
        if wanted and self.web.resumes and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if wanted and self.web.resumes else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : self.web.breaks_after])

    def log_message(self, *arguments: object) -> None:
        """Nothing: the test's output is not a log."""


@pytest.fixture
def web() -> Iterator[Web]:
    """A server whose archive ``/a.tgz`` holds MEMBERS."""
    web = Web(content={"/a.tgz": tgz(MEMBERS)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, web))
    web.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    server.shutdown()
    thread.join()
    server.server_close()


def tgz(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=0) as archive:
        for name, text in members.items():
            information = tarfile.TarInfo(name)
            information.size = len(text.encode())
            archive.addfile(information, io.BytesIO(text.encode()))
    return buffer.getvalue()


def archive_on(web: Web, algorithm: str = "sha256") -> Archive:
    digits = hashlib.new(algorithm, web.content["/a.tgz"]).hexdigest()
    return Archive(f"{web.url}/a.tgz", "a.tgz", f"{algorithm}:{digits}", ("training/a.de", "training/a.en"))


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def assert_complete(folder: Path, *others: str) -> None:
    """Only the members and ``others`` are there."""
    wanted = {"training/a.de", "training/a.en"}
    assert files_below(folder) == {*wanted, *others}
    assert all((folder / name).read_text() == MEMBERS[name] for name in wanted)


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_download_and_unpack(algorithm: str, web: Web, tmp_path: Path) -> None:
    obtain(archive_on(web, algorithm), tmp_path / "new" / "raw")
    assert_complete(tmp_path / "new" / "raw")
    assert web.ranges == [None]
    obtain(archive_on(web), tmp_path / "new" / "raw")
    assert web.ranges == [None], "what is unpacked is not downloaded again"


def test_interrupted_download_goes_on(web: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    web.breaks_after = 100_000
    with pytest.raises(
        PrepareError, match=r"cannot download http.*a\.tgz: .*; run the command again to continue, or put a\.tgz into"
    ):
        obtain(archive_on(web), tmp_path)
    assert files_below(tmp_path) == {"a.tgz.part"}
    assert (tmp_path / "a.tgz.part").stat().st_size == 100_000
    web.breaks_after = None
    obtain(archive_on(web), tmp_path)
    assert_complete(tmp_path)
    assert web.ranges == [None, "bytes=100000-"]
    assert "from byte 100000 on" in capsys.readouterr().err


@pytest.mark.parametrize(("received", "resumes"), [(5000, False), (None, True)], ids=["no-resuming", "complete"])
def test_part_of_a_download(received: int | None, resumes: bool, web: Web, tmp_path: Path) -> None:
    """A server that cannot resume sends all again; a download may be complete but for its name."""
    (tmp_path / "a.tgz.part").write_bytes(web.content["/a.tgz"][:received])
    web.resumes = resumes
    obtain(archive_on(web), tmp_path)
    assert_complete(tmp_path)


def test_wrong_checksum_of_a_download(web: Web, tmp_path: Path) -> None:
    archive = replace(archive_on(web), checksum=f"sha256:{'0' * 64}")
    with pytest.raises(
        PrepareError, match=r"a\.tgz\.part has sha256 [0-9a-f]{64}, expected 0{64}; .* run the command again"
    ):
        obtain(archive, tmp_path)
    assert files_below(tmp_path) == set()


def test_a_file_of_the_name_of_a_member_is_not_overwritten(web: Web, tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "a.de").write_text("my own")
    with pytest.raises(PrepareError, match=r"training/a\.de differs from the archive, which would overwrite it"):
        obtain(archive_on(web), tmp_path)
    assert (tmp_path / "training" / "a.de").read_text() == "my own"
    assert files_below(tmp_path) == {"a.tgz", "training/a.de"}


def test_wrong_archive_that_was_put_there_is_kept(web: Web, tmp_path: Path) -> None:
    (tmp_path / "a.tgz").write_bytes(b"something else")
    with pytest.raises(PrepareError, match=r"a\.tgz has sha256 .*; delete it to download it from http"):
        obtain(archive_on(web), tmp_path)
    assert files_below(tmp_path) == {"a.tgz"}


def test_missing_page_and_missing_server(web: Web, tmp_path: Path) -> None:
    with pytest.raises(PrepareError, match=r"cannot download .*b\.tgz: Not Found"):
        obtain(replace(archive_on(web), url=f"{web.url}/b.tgz"), tmp_path)
    with pytest.raises(PrepareError, match=r"cannot download http://127\.0\.0\.1:9/a\.tgz: .*refused"):
        obtain(replace(archive_on(web), url="http://127.0.0.1:9/a.tgz"), tmp_path / "new" / "raw")
    assert files_below(tmp_path) == set()
    assert not (tmp_path / "new").exists()


def test_archive_without_a_member(web: Web, tmp_path: Path) -> None:
    web.content["/a.tgz"] = tgz({"training/a.de": "x"})
    with pytest.raises(PrepareError, match=r"a\.tgz does not hold training/a\.en"):
        obtain(archive_on(web), tmp_path)


@pytest.mark.parametrize("content", [b"no archive", tgz(MEMBERS)[:200_000]], ids=["other", "cut-off"])
def test_damaged_archive(content: bytes, web: Web, tmp_path: Path) -> None:
    web.content["/a.tgz"] = content
    with pytest.raises(PrepareError, match=r"a\.tgz is not a complete \.tgz"):
        obtain(archive_on(web), tmp_path)
    assert not [name for name in files_below(tmp_path) if name.endswith(".en")]


def test_half_unpacked_archive_is_unpacked_again(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copyfileobj

    def stop_within_the_second(content: Any, file: Any, length: int) -> None:
        if "a.en" not in file.name:
            copy(content, file, length)
            return
        file.write(content.read(1000))
        raise KeyboardInterrupt

    monkeypatch.setattr(download.shutil, "copyfileobj", stop_within_the_second)
    with pytest.raises(KeyboardInterrupt):
        obtain(archive_on(web), tmp_path)
    assert files_below(tmp_path) == {"a.tgz", "training/a.de", "training/a.en.part"}
    monkeypatch.undo()
    obtain(archive_on(web), tmp_path)
    assert_complete(tmp_path, "a.tgz")
    assert web.ranges == [None], "the archive was there already"
