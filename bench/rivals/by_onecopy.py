"""Batches of 64 by onecopy: `by_onecopy.py npy|jpg URL...`."""

from __future__ import annotations

import sys
from urllib.parse import urlsplit

import meter
import onecopy

kind, *urls = sys.argv[1:]
host = urlsplit(urls[0])
loader = (
    onecopy.open(
        [f"s3:/{urlsplit(url).path}" for url in urls],
        endpoint_url=f"{host.scheme}://{host.netloc}",
        region="us-east-1",
        no_sign_request=True,
        memory="256MiB",
        decode_threads=1,
    )
    .decode("rgb", size=224, fit="stretch")
    .to_tuple(kind, "cls")
    .batch(64)
)
meter.run(loader)
