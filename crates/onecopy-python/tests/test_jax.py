"""Tensors of jax."""

import numpy as np
import pytest

import onecopy

jax = pytest.importorskip("jax")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_batches_are_jaxs(url):
    loader = onecopy.open(url, as_="jax").decode("rgb").to_tuple("npy", "png", "cls").batch(4)
    arrays, pictures, labels = next(iter(loader))
    assert isinstance(arrays, jax.Array)
    assert isinstance(pictures, jax.Array)
    assert (pictures.shape, labels.tolist()) == ((4, 3, 8, 6), [0, 1, 2, 3])
    other = next(iter(loader.to("cpu", as_="numpy")))
    assert np.array_equal(np.asarray(pictures), other[1])
    assert arrays.unsafe_buffer_pointer() % 4096 == 0


def test_batches_made_in_python_are_jaxs(url):
    loader = onecopy.open(url, as_="jax").decode().to_tuple("npy").map(lambda s: s).batch(4)
    assert next(iter(loader))[0].shape == (4, 3)
