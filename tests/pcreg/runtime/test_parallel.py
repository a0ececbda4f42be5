from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from pcreg.geometry.voxel_grid import voxel_downsample
from pcreg.mapping.proposal import candidates
from pcreg.mapping.submap import answered
from pcreg.registration.clouds.preprocess import downsample_and_filter
from pcreg.registration.matching.nearest import match_all
from pcreg.registration.matching.screening import screen
from pcreg.runtime import cached_property, parallel


def test_answers_come_in_the_order_of_the_items():
    assert parallel.each(lambda item: item * item, range(100)) == [item * item for item in range(100)]


def test_an_error_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        parallel.each(lambda item: 1 // item, [1, 0, 2])


def threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_has_one_thread_within_calls_from_any_thread_and_its_own_number_after_the_last():
    def within():
        with parallel.one_for_blas():
            return threads()

    with parallel.threadpool_limits(3):  # more than one, also where there is one core
        usual = threads()
        assert within() == {1}
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(within).result() == {1}
            first, last = parallel.one_for_blas(), parallel.one_for_blas()
            first.__enter__()
            pool.submit(last.__enter__).result()
            first.__exit__()
            assert threads() == {1}
            pool.submit(last.__exit__).result()
            assert threads() == usual != {1}


class Asked:
    def __getattr__(self, name):
        raise RuntimeError(f"{max(threads())} threads")


ANY = Asked()


@pytest.mark.parametrize(
    ("compute", "given"),
    [(candidates, ([ANY] * 101,)), (screen, (ANY, ANY)), (answered, (ANY, [], 1, ANY))],
)
def test_maps_do_not_depend_on_the_number_of_cores(compute, given):
    with parallel.threadpool_limits(3), pytest.raises(RuntimeError, match=r"^1 threads"):
        compute(*given)


@pytest.mark.parametrize(("points", "used"), [(0, 1), (1_999, 1), (4_000, 2), (10**6, 4)])
def test_few_points_are_not_worth_many_threads(monkeypatch, points, used):
    monkeypatch.setattr(parallel, "cores", lambda: 4)
    assert parallel.cores_for(points) == used


def test_answers_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    points, (a, b) = rng.normal(size=(20_000, 3)), rng.normal(size=(2, 3000, 33)).astype(np.float32)
    monkeypatch.setattr("pcreg.geometry.voxel_grid.BLOCK_POINTS", 3000)
    monkeypatch.setattr("pcreg.registration.matching.nearest.MAX_BLOCK_BYTES", 1 << 18)

    def answers(number):
        monkeypatch.setattr(parallel, "cores", lambda: number)
        return (
            voxel_downsample(points, 0.1),
            downsample_and_filter(points, 0.3, np.zeros(3)),
            match_all(a, b).rows,
        )

    alone = answers(1)
    for _ in range(3):
        for one, several in zip(alone, answers(4), strict=True):
            np.testing.assert_array_equal(one, several)


def test_it_is_computed_once_for_each_object():
    class Squared:
        def __init__(self, number):
            self.number, self.calls = number, 0

        @cached_property
        def value(self):
            """The square."""
            self.calls += 1
            return self.number**2

    two, three = Squared(2), Squared(3)
    assert [two.value, two.value, three.value, two.calls] == [4, 4, 9, 1]
    del two.value
    assert [two.value, two.calls, Squared.value.__doc__] == [4, 2, "The square."]
