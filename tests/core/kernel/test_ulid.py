import re
from collections import Counter

from accord.core.kernel.ulid import ulid, ulid_generator

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def test_a_generated_ulid_has_the_current_time_and_fresh_random_digits() -> None:
    times = iter([1, 1, 2, 1795019747003])
    asked: list[int] = []

    def entropy(count: int) -> bytes:
        asked.append(count)
        return bytes(number % 256 for number in range(count))

    generate = ulid_generator(lambda: next(times), entropy)
    made = [generate() for _ in range(4)]

    assert [each[:10] for each in made] == [
        ulid(at, bytes(10))[:10] for at in (1, 1, 2, 1795019747003)
    ]
    assert all(re.fullmatch(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", each) for each in made)
    assert {each[10:] for each in made} == {ALPHABET[:16], ALPHABET[16:]}
    assert len(asked) == 1


def test_every_digit_is_equally_likely_and_no_random_digit_is_used_twice() -> None:
    blocks: list[bytes] = []

    def entropy(count: int) -> bytes:
        first = len(blocks)
        blocks.append(bytes((first + number) % 256 for number in range(count)))
        return blocks[-1]

    generate = ulid_generator(lambda: 0, entropy)
    made = "".join(generate()[10:] for _ in range(256))

    assert len(made) == sum(map(len, blocks))
    assert set(Counter(made).values()) == {len(made) // 32}
