"""Tensors leave without a copy, and live as long as their views."""

import gc

import numpy as np
import pytest

import onecopy
from onecopy import _onecopy
from onecopy._settings import Settings


def tensors(url):
    load = _onecopy.Load(Settings(urls=(url,), is_decoding=True, fields=("npy",), batch_size=5))
    batch = load.next()
    assert batch is not None
    ((_, kind, tensor),) = batch.columns()
    assert kind == "tensor"
    return load, tensor


def test_two_views_share_one_memory(url):
    _, tensor = tensors(url)
    one, other = np.from_dlpack(tensor), np.from_dlpack(tensor)
    assert one.ctypes.data == other.ctypes.data == tensor.data_ptr
    assert tensor.data_ptr % 4096 == 0
    assert (tensor.dtype, tensor.shape, tensor.strides) == ("float32", (5, 3), (3, 1))
    assert tensor.nbytes == 5 * 3 * 4


def test_views_outlive_batch_load_and_tensor(url):
    load, tensor = tensors(url)
    view = np.from_dlpack(tensor)[1:, :1]
    load.close()
    del load, tensor
    gc.collect()
    assert view.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_capsules_are_named_by_version_and_freed_when_nobody_takes_them(url, version):
    _, tensor = tensors(url)
    name = "dltensor_versioned" if version is not None and version[0] >= 1 else "dltensor"
    for _ in range(100):
        assert f'"{name}"' in repr(tensor.__dlpack__(max_version=version))
    gc.collect()
    assert np.from_dlpack(tensor)[0, 1] == 0.5


def test_untaken_capsules_keep_the_memory(url):
    _, tensor = tensors(url)
    capsule = tensor.__dlpack__()
    address = tensor.data_ptr
    del tensor
    gc.collect()

    class Again:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert np.from_dlpack(Again()).ctypes.data == address


def test_what_cannot_be_done_is_refused_as_the_standard_says(url):
    _, tensor = tensors(url)
    assert tensor.__dlpack_device__() == (1, 0)
    tensor.__dlpack__(dl_device=(1, 0), copy=False, stream=None)
    with pytest.raises(BufferError, match="host memory"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="copy"):
        tensor.__dlpack__(copy=True)
    with pytest.raises(ValueError, match="stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="float32"):
        tensor.__index__()


def test_empty_axes_are_no_trouble(tmp_path):
    import shards

    url = shards.write(tmp_path / "a.tar", {"a": {"npy": shards.npy([], (0, 3))}})
    (sample,) = onecopy.open(url, as_="numpy").decode()
    assert sample["npy"].shape == (0, 3)
