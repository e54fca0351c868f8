"""The command over HTTPS, against nginx with each cipher of each version."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = Path(__file__).parents[2] / "target" / "release" / "onecopy"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = pytest.mark.skipif(
    not (NGINX and shutil.which("openssl")),
    reason="nginx or openssl is not here: apt-get install nginx-light openssl",
)
READY_SECONDS = 30
STARTS = 3
BODY_BYTES = (20 << 20) + 12345  # three ranges, the last not of whole pages
# Protocol, cipher, and what else the server does its own way: small records, and connections that
# it closes after a few requests.
WAYS = [
    ("TLSv1.3", "TLS_AES_128_GCM_SHA256", ""),
    ("TLSv1.3", "TLS_AES_256_GCM_SHA384", ""),
    ("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256", ""),
    ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", ""),
    ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", ""),
    ("TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305", ""),
    ("TLSv1.3", "TLS_AES_128_GCM_SHA256", "ssl_buffer_size 1400;"),
    ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", "keepalive_requests 2;"),
]


@dataclass(frozen=True)
class Site:
    """A folder, the certificate to trust, and what lies in the folder."""

    folder: Path
    certificate: Path
    body: bytes


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Make a file of random bytes and a certificate for the loopback address."""
    folder = tmp_path_factory.mktemp("nginx")
    certificate = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    body = random.Random(0).randbytes(BODY_BYTES)  # noqa: S311 - only to be of no pattern
    (folder / "www").mkdir()
    (folder / "www" / "body").write_bytes(body)
    return Site(folder, certificate, body)


def configuration(site: Site, port: int, way: tuple[str, str, str]) -> str:
    """Return the configuration of a server that speaks one cipher of one version."""
    protocol, cipher, more = way
    key = "ssl_conf_command Ciphersuites" if protocol == "TLSv1.3" else "ssl_ciphers"
    temporary = "\n".join(
        f"{kind}_temp_path {site.folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
master_process off;
pid {site.folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 256; }}
http {{
    access_log off;
    {temporary}
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {site.certificate};
        ssl_certificate_key {site.folder}/key.pem;
        ssl_protocols {protocol};
        {key} {cipher};
        {more}
        root {site.folder}/www;
    }}
}}
"""


@contextlib.contextmanager
def nginx(site: Site, way: tuple[str, str, str]) -> Iterator[str]:
    """Run nginx, again on another port if the first was taken meanwhile; gives the URL."""
    assert NGINX
    log = site.folder / "nginx.log"
    for _ in range(STARTS):
        (port,) = free_ports(1)
        (site.folder / "nginx.conf").write_text(configuration(site, port, way))
        command = [NGINX, "-p", str(site.folder), "-c", str(site.folder / "nginx.conf")]
        with log.open("ab") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            end = time.monotonic() + READY_SECONDS
            while process.poll() is None and time.monotonic() < end:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    yield f"https://127.0.0.1:{port}/body"
                    return
                time.sleep(0.05)
        finally:
            process.kill()
            process.wait()
    raise RuntimeError(f"nginx did not start:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way).strip("-; "))
def test_nginx_is_read_whole_and_without_a_copy(site: Site, way: tuple[str, str, str]) -> None:
    """The bytes are those of the file, and hardly one of them was copied."""
    with nginx(site, way) as url:
        options = ["--ca-bundle", str(site.certificate)]
        read = subprocess.run(
            [COMMAND, "cat", url, *options], capture_output=True, timeout=60, check=False
        )
        assert read.returncode == 0, read.stderr.decode()
        assert read.stdout == site.body
        bench = [COMMAND, "bench", url, "--to", "buffer", "--json", *options]
        done = subprocess.run(bench, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr.decode()
        ledger = json.loads(done.stdout)
        hops = {hop["hop"]: hop["bytes"] for hop in ledger["hops"]}
        assert hops["tls_open"] == hops["tls_recv"] == len(site.body)
        assert "recv" not in hops
        assert ledger["copies_per_byte"]["user"] <= 0.01
