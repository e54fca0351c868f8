"""The order of a shuffle."""

import onecopy


def order(loader):
    return [cls for (cls,) in loader]


def test_without_shuffle_the_order_is_that_of_the_shards(urls):
    assert order(onecopy.open(urls).decode().to_tuple("cls")) == list(range(100))


def test_a_shuffle_gives_every_sample_once_in_an_order_of_seed_and_epoch(urls):
    def loader(seed):
        return onecopy.open(urls).shuffle(20, seed=seed).decode().to_tuple("cls")

    first = order(loader(1))
    assert first != list(range(100))
    assert sorted(first) == list(range(100))
    assert order(loader(1)) == first
    assert order(loader(2)) != first


def test_each_iteration_is_the_next_epoch_and_epochs_can_be_set(urls):
    loader = onecopy.open(urls).shuffle(20, seed=3).decode().to_tuple("cls")
    epochs = [order(loader) for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    loader.set_epoch(1)
    assert [order(loader), order(loader)] == epochs[1:]
    assert order(loader.to("cpu")) not in epochs


def test_a_shuffle_of_one_keeps_the_order(urls):
    loader = onecopy.open(urls).shuffle(1).decode().to_tuple("cls")
    assert order(loader) == list(range(100))
