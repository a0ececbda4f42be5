import gc

import pytest

from pcreg.runtime.garbage import no_garbage_search


def failing():
    with no_garbage_search():
        assert not gc.isenabled()
        raise ZeroDivisionError


def test_nothing_is_searched_within_and_what_exists_then_never_is():
    try:
        with pytest.raises(ZeroDivisionError):
            failing()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
