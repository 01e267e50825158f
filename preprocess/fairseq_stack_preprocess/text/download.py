"""Downloading archives, once: checked, resumed after an interruption, and unpacked as far as needed."""

from __future__ import annotations

import filecmp
import hashlib
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..progress import progress, say
from .streams import require_file

CHUNK_BYTES = 1 << 20
SECONDS_TO_WAIT = 60.0


@dataclass(frozen=True)
class Archive:
    """A ``.tgz`` on the web.

    Attributes:
        url: where it is.
        name: of the file that it is saved as.
        checksum: ``ALGORITHM:DIGITS`` with an algorithm of hashlib.
        members: the files to take out of it.
    """

    url: str
    name: str
    checksum: str
    members: tuple[str, ...]

    def is_unpacked(self, folder: Path) -> bool:
        """Whether all members are in ``folder``."""
        return all((folder / member).is_file() for member in self.members)


def obtain(archive: Archive, folder: Path) -> None:
    """Put the members of an archive into ``folder``; the archive is downloaded if it is not there already.

    A downloaded archive is removed after it is unpacked; an archive that was there before stays. The next call
    resumes an interrupted download.

    Raises:
        PrepareError: the download fails, or the archive is not what it should be.
    """
    if archive.is_unpacked(folder):
        return
    path = folder / archive.name
    if os.path.lexists(path):
        require_file(path)
        _check(path, archive, f"delete it to download it from {archive.url}")
        unpack(path, archive.members, folder)
    else:
        download(archive, path)
        unpack(path, archive.members, folder)
        path.unlink()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrepareError(f"cannot make the folder {folder}: {error.strerror}") from error


def download(archive: Archive, path: Path) -> None:
    """Download an archive to ``path``, by way of ``path.part``, with which a later call continues.

    Raises:
        PrepareError: there is no connection, the server refuses, or the checksum differs.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        _fetch(archive.url, part)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise PrepareError(
            f"cannot download {archive.url}: {reason}; run the command again to continue, or put {path.name} "
            f"into {path.parent} by other means (--raw names that folder)"
        ) from error
    try:
        _check(part, archive, "the download was deleted; run the command again")
    except PrepareError:
        part.unlink()
        raise
    part.rename(path)


def _fetch(url: str, part: Path) -> None:
    """Append the missing bytes to ``part``, or write all of it if the server cannot send a part."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS_TO_WAIT)
    except urllib.error.HTTPError as error:
        if start and error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # Nothing is missing, as the checksum will show.
        raise
    with response:
        _make(part.parent)  # not before there is something to put into it
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        with open(part, "ab" if resumed else "wb") as file:
            _copy(response, file, start if resumed else 0, url)


def _copy(response: Any, file: Any, start: int, url: str) -> None:
    """Copy the response to a file; ``start`` bytes were there before."""
    length = response.headers.get("Content-Length")
    total = None if length is None else start + int(length)
    say(f"download: {url}" + (f", from byte {start} on" if start else ""))
    chunks = iter(lambda: response.read(CHUNK_BYTES), b"")
    number = None if total is None else -(-(total - start) >> 20)
    for chunk in progress(chunks, label="download, MiB", total=number, unit="MiB"):
        file.write(chunk)
    if total is not None and file.tell() != total:
        raise http.client.IncompleteRead(b"", total - file.tell())


def _check(path: Path, archive: Archive, advice: str) -> None:
    """Raise PrepareError unless the file has the archive's checksum."""
    algorithm, expected = archive.checksum.split(":")
    with open(path, "rb") as file:
        digits = hashlib.file_digest(file, algorithm).hexdigest()
    if digits != expected:
        raise PrepareError(f"{path} has {algorithm} {digits}, expected {expected}; {advice}")


def unpack(path: Path, members: Sequence[str], folder: Path) -> None:
    """Take files out of a ``.tgz``; each appears in ``folder`` complete or not at all.

    Raises:
        PrepareError: the archive is damaged or lacks a member, or a different file has a member's name.
    """
    wanted = set(members)
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                if wanted and member.name in wanted and (content := archive.extractfile(member)) is not None:
                    _save(content, folder / member.name)
                    wanted.remove(member.name)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise PrepareError(f"{path} is not a complete .tgz: {error}") from error
    if wanted:
        raise PrepareError(f"{path} does not hold {', '.join(sorted(wanted))}")


def _save(content: Any, path: Path) -> None:
    _make(path.parent)
    part = path.with_name(f"{path.name}.part")
    with open(part, "wb") as file:
        shutil.copyfileobj(content, file, CHUNK_BYTES)
    if os.path.lexists(path) and not (path.is_file() and filecmp.cmp(part, path, shallow=False)):
        part.unlink()
        raise PrepareError(f"{path} differs from the archive, which would overwrite it; move it elsewhere")
    os.replace(part, path)
