import os
import signal

import pytest
from torch.utils.data import DataLoader

from datasets.loading import in_plain_words
from pcreg.errors import InputError


class Refuses:
    def __len__(self):
        return 1

    def __getitem__(self, _):
        raise InputError("a.ply: holds no points; give another")


class Dies(Refuses):
    def __getitem__(self, _):
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_loader_refuses_is_one_sentence():
    with pytest.raises(InputError) as refused, in_plain_words():
        list(DataLoader(Refuses(), num_workers=1))
    assert str(refused.value) == "a.ply: holds no points; give another"


def test_a_loader_that_dies_is_one_sentence():
    with (
        pytest.raises(InputError, match=r"^a process that makes batches ended .*workers=0"),
        in_plain_words(),
    ):
        list(DataLoader(Dies(), num_workers=1))


@pytest.mark.parametrize("error", [InputError("a; InputError: give b"), RuntimeError("no memory")])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as passed, in_plain_words():
        raise error
    assert passed.value is error
