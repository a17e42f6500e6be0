"""What a kernel sends is measured frame by frame before libzmq holds any of it."""

import random

import pytest

from grading.sandbox.relay import FRAME_BYTES, GREETING, LONG, MORE, Meter, TooMuch

KIB = 1 << 10
FLOOD = """
import os, socket, struct
for number in range(3, 200):
    try:
        channel = socket.socket(fileno=os.dup(number))
        name = str(channel.getsockname())
        channel.getpeername()
    except OSError:
        continue
    if name.endswith("channel-{port}"):
        channel.setblocking(True)
        while True:
            channel.sendall({frame})
"""


def frame(length: int, more: bool, wide: bool) -> bytes:
    flags = MORE * more | LONG * wide
    return bytes([flags]) + length.to_bytes(8 if wide else 1, "big") + bytes(length)


def test_however_it_is_cut_the_same_is_measured():
    rng = random.Random(41)
    for _ in range(50):
        lengths = [rng.randrange(256) for _ in range(20)]
        stream = bytes(GREETING) + b"".join(frame(n, rng.random() < 0.7, rng.random() < 0.5) for n in lengths)
        total = sum(lengths) + FRAME_BYTES * len(lengths)
        for most, fits in ((total, True), (total - 1, False)):
            meter, at = Meter(total, most), 0
            try:
                while at < len(stream):
                    step = rng.randrange(1, 40)
                    meter.feed(stream[at : at + step])
                    at += step
            except TooMuch:
                assert not fits
            else:
                assert fits


def test_a_message_is_measured_over_all_its_frames_and_the_next_begins_anew():
    meter = Meter(10 * KIB, 1000 * KIB)
    meter.feed(bytes(GREETING))
    for _ in range(20):
        for more in (True, True, False):
            meter.feed(frame(3 * KIB, more, True))
    with pytest.raises(TooMuch, match="a message of more than"):
        for _ in range(4):
            meter.feed(frame(3 * KIB, True, True))


def test_frames_of_nothing_count_for_what_they_take():
    meter = Meter(1000 * KIB, 10 * KIB)
    meter.feed(bytes(GREETING))
    with pytest.raises(TooMuch, match="of output"):
        meter.feed(frame(0, False, False) * (10 * KIB // FRAME_BYTES + 1))


@pytest.mark.parametrize("port", [1, 2])
@pytest.mark.parametrize("frame", [r"b'\3' + struct.pack('>Q', 1 << 20) + bytes(1 << 20)", r"b'\1\0' * 10_000"])
def test_a_message_that_never_ends_ends_the_kernel(new_box, port, frame):
    box = new_box()
    assert box.run(FLOOD.format(port=port, frame=frame)).error == "dead"
    assert box.manager.stopped_because == "sent a message of more than 16 MiB"
