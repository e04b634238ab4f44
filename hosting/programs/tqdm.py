"""Stand-in for the package tqdm, which the platform's image lacks: its bars show nothing."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class SilentBar:
    """A progress bar that shows nothing. It accepts all arguments and methods of tqdm's bar."""

    def __init__(self, iterable: Iterable[Any] = (), *_: Any, **__: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        """Yield the items of the iterable, as tqdm does."""
        return iter(self._iterable)

    def __enter__(self) -> "SilentBar":
        """Return this bar: like tqdm's bar, it can be used in a `with` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, since no bar is shown."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a function that does nothing, for methods such as `update` and `close`."""
        return _do_nothing


def _do_nothing(*_: Any, **__: Any) -> None:
    pass


tqdm = SilentBar
