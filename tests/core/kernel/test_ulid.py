from accord.core.kernel.ulid import ulid, ulid_generator


def test_a_generated_ulid_has_the_current_time_and_fresh_random_bytes() -> None:
    times, random_bytes = iter([1, 2]), iter([b"\x01" * 10, b"\x02" * 10])

    generate = ulid_generator(lambda: next(times), lambda count: next(random_bytes)[:count])

    assert [generate(), generate()] == [ulid(1, b"\x01" * 10), ulid(2, b"\x02" * 10)]
