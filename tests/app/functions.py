"""Functions that tests run in processes of their own."""


def add(a: int, b: int) -> int:
    return a + b
