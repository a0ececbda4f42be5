"""What goes wrong in torch's loader processes, said as if it went wrong here."""

from collections.abc import Iterator
from contextlib import contextmanager

from pcreg.errors import InputError


@contextmanager
def in_plain_words() -> Iterator[None]:
    """Raise what a loader process refuses, or that it died, as an InputError of one sentence."""
    try:
        yield
    except InputError as error:
        # From a loader it comes with the whole traceback there, which ends with the sentence.
        words, refused, sentence = str(error).rstrip().rpartition(f"{InputError.__name__}: ")
        if refused and words.startswith("Caught"):
            raise InputError(sentence) from error
        raise
    except RuntimeError as error:
        if "DataLoader worker (pid" not in str(error):
            raise
        raise InputError(
            f"a process that makes batches ended ({str(error).strip('. ')}), probably for want of memory; "
            "run again with workers=0 (what is done up to the last checkpoint is kept)"
        ) from error
