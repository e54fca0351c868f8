"""The front door: URLs and settings in, a loader out."""

import os
from collections.abc import Iterable

from onecopy import _onecopy, _options
from onecopy._chain import Chain
from onecopy._options import (
    AddressingStyle,
    Duplicates,
    ErrorHandler,
    KeyRule,
    Library,
    Named,
    OnError,
    Route,
    RouteWish,
)
from onecopy._ranks import Wish
from onecopy._settings import Settings
from onecopy.errors import UnsupportedError, told
from onecopy.loader import Loader


def open(  # noqa: A001, PLR0913 - as in PIL.Image.open; one call says it all
    urls: Named | Iterable[Named],
    *,
    endpoint_url: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    no_sign_request: bool = False,
    request_payer: str | None = None,
    addressing_style: AddressingStyle | None = None,
    sse_c_key: str | bytes | None = None,
    no_verify_checksum: bool = False,
    ca_bundle: str | os.PathLike[str] | None = None,
    no_verify_ssl: bool = False,
    memory: str | int | None = None,
    route: RouteWish = "auto",
    require: Route | None = None,
    on_error: OnError | ErrorHandler = "raise",
    max_skipped: int | None = None,
    wait_limit: float | None = 300.0,
    connections: int | None = None,
    decode_threads: int | None = None,
    key_rule: KeyRule = "first-dot",
    duplicates: Duplicates = "error",
    index: str | os.PathLike[str] | None = None,
    lanes: int | None = None,
    steps_per_epoch: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    replicate: int = 1,
    cache: str | os.PathLike[str] | None = None,
    cache_size: str | int | None = None,
    as_: Library | None = None,
) -> Loader:
    """Name data to load: tar shards in WebDataset form. Nothing is read yet.

    Parameters
    ----------
    urls
        ``s3://bucket/train-{000..999}.tar``, a prefix, a glob, ``gs://bucket/name``,
        ``az://container/name``, ``http(s)://``, ``file://``, a path; or several of them. A path of
        this machine may be ``bytes``, or hold the bytes that ``os.fsdecode`` escapes; everything
        else must be text in UTF-8.
    endpoint_url, region, profile, no_sign_request, request_payer, ca_bundle, no_verify_ssl
        As with the AWS tools; ``AWS_*`` variables and the profile fill what is left open. For
        ``gs://`` and ``az://`` those of Google's and Microsoft's tools do.
        ``request_payer`` is ``"requester"`` or None.
    addressing_style
        Where the bucket is named: in the path, or in the host (``"virtual"``). None takes the
        profile's; ``"auto"`` is virtual at AWS, where DNS allows it, and path at an endpoint that
        was given.
    sse_c_key
        The key that objects are encrypted with at the store (SSE-C): its 32 bytes, base64 of them,
        ``"fileb://path"`` of a file with the bytes or ``"file://path"`` of one with base64.
    no_verify_checksum
        Whether objects are taken without holding them against the checksums of the store.
    memory
        For everything in flight: bytes, or text like ``"2GiB"``. None takes a quarter of what is
        free, at most 2 GiB. Batches that were handed out do not count.
    route
        The route wished for. Where it cannot be had another is taken, and the ledger says so.
    require
        A route that must be had.
    on_error
        What to do with a sample that cannot be read, decoded or batched, or a shard that cannot be
        read: ``"raise"`` ends the iteration, ``"warn"`` logs to the logger ``onecopy``, counts and
        goes on, ``"skip"`` counts and goes on. Or a function that is called with each such error
        (an :class:`Error`: ``kind``, ``shard`` and ``key``, where known, tell what it is about) and
        returns one of these words, None being no answer. It is called on whatever thread found the
        error, several at a time perhaps; what it raises ends the iteration; it cannot go on with an
        iteration itself. Errors that every shard would meet (no credentials, say), bugs, and what
        the functions of :meth:`Loader.map` raise always end the iteration, and nobody is asked.
    max_skipped
        How many samples and shards, together, an iteration may leave out; None allows any number.
        The next one ends it, with an error that says what was left out before. Each process counts
        for itself: a rank, a worker of a ``DataLoader``. A shard that breaks off within a sample
        counts twice.
    wait_limit
        Seconds. Where an iteration is waited for and nothing at all has moved for so long (no byte,
        no sample, no try), it ends with an error that says what it waits for: a disk that does not
        answer, a function of yours that does not return, memory that you hold. None waits for ever.
        Time in which nobody waits does not count. A store gives up before, by limits of its own;
        for data that come over the network it is four minutes at least.
    connections
        Connections to the store, at most; None allows 256. A load begins with 32 and takes more
        while they bring more.
    decode_threads
        Threads that decode; None takes one per core.
    key_rule
        Which dot of a file name ends the key.
    duplicates
        What to do where a sample has the same field twice.
    index
        The ``index.json`` that ``onecopy index`` has written, or one of wids or Megatron-Energon:
        how many samples each shard has, and where they begin. Needed where several ranks are to
        make the same number of steps, unless ``steps_per_epoch`` says how many; with it a run goes
        on in mid-epoch on any number of ranks, and without reading again what came before.
    lanes
        How many streams of shards are read side by side and give their samples in turn. The order
        depends on it. Each number of ranks that is to share the data must divide it. None takes 64
        where data are shuffled or divided among ranks or workers, or fewer where there are fewer
        shards or little memory; else one, which keeps the order of the shards.
    steps_per_epoch
        How many steps each rank makes in an epoch: batches, or samples where nobody makes batches.
        With it several ranks can do without an index: each process (a rank, or one of its workers)
        reads shards of its own, and begins them again where steps are still missing. Samples then
        come more than once, which the ledger tells (``passes``); what is not reached does not come
        in this epoch. With an index the epoch is cut, or goes round, as :meth:`Loader.plan` says.
    rank, world_size
        Which of how many processes this is that divide the data among themselves. None asks
        torch.distributed, then the variables of torchrun, when iteration starts.
    replicate
        So many neighbouring ranks read the same data: tensor or sequence parallel groups.
    cache, cache_size
        Not in this version.
    as_
        Whose tensors to give: ``"torch"``, ``"numpy"`` or ``"jax"``. None takes torch, or numpy
        where torch cannot be imported.

    Returns
    -------
    Loader
        To be refined by its methods, and iterated.

    Raises
    ------
    InvalidInputError
        Where an option has a value that it cannot have; :class:`InvalidTypeError` (also a
        ``TypeError``) where the type is wrong.
    UnsupportedError
        For what this version cannot do.
    """
    for option, value in (("cache", cache), ("cache_size", cache_size)):
        if value is not None:
            raise told(
                UnsupportedError,
                "take the option",
                f"{option}={value!r}",
                "this version has no cache yet",
                "leave it out: each epoch is then read from the store",
            )
    if require is not None:
        _options.choice("require", require, Route)
        if route not in {"auto", require}:
            why = f"it is not what require={require!r} demands"
            raise _options.bad("route", route, why, "leave one of them out")
    if request_payer not in {None, "requester"}:
        hint = 'give "requester", or leave it out'
        raise _options.bad("request_payer", request_payer, "there is no such payer", hint)
    optional = _options.optional
    settings = Settings(
        urls=_options.urls(urls),
        endpoint_url=optional(_options.text, "endpoint_url", endpoint_url),
        region=optional(_options.text, "region", region),
        profile=optional(_options.text, "profile", profile),
        no_sign_request=_options.flag("no_sign_request", no_sign_request),
        is_requester_paying=request_payer is not None,
        addressing_style=None
        if addressing_style is None
        else _options.choice("addressing_style", addressing_style, AddressingStyle),
        sse_c_key=optional(_options.secret, "sse_c_key", sse_c_key),
        no_verify_checksum=_options.flag("no_verify_checksum", no_verify_checksum),
        ca_bundle=optional(_options.path, "ca_bundle", ca_bundle),
        no_verify_ssl=_options.flag("no_verify_ssl", no_verify_ssl),
        memory_bytes=optional(_options.size_bytes, "memory", memory),
        route=_options.choice("route", route, RouteWish),
        require=require,
        on_error=_options.on_error("on_error", on_error),
        max_skipped=optional(_options.integer, "max_skipped", max_skipped),
        wait_limit=optional(_options.seconds, "wait_limit", wait_limit),
        connections=optional(_options.positive, "connections", connections),
        decode_threads=optional(_options.positive, "decode_threads", decode_threads),
        key_rule=_options.choice("key_rule", key_rule, KeyRule),
        duplicates=_options.choice("duplicates", duplicates, Duplicates),
        index=optional(_options.path, "index", index),
        lanes=optional(_options.positive, "lanes", lanes),
        steps_per_epoch=optional(_options.positive, "steps_per_epoch", steps_per_epoch),
    )
    ranks = Wish(
        rank=optional(_options.integer, "rank", rank),
        world_size=optional(_options.positive, "world_size", world_size),
        replicate=_options.positive("replicate", replicate),
    )
    library = optional(_options.library, "as_", as_)
    _onecopy.check(settings)
    return Loader.of(Chain(settings=settings, library=library, ranks=ranks))
