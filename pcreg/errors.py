"""The one exception that a person's input can cause."""


class InputError(ValueError):
    """A file, option or configuration key that cannot be used.

    The message is one sentence that names the file or key and the remedy. Entry scripts print it
    and exit with status 2; library callers may catch it.
    """
