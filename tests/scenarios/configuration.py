"""Configuration that changes between calls: the objects that programs keep their settings in."""

from __future__ import annotations

import argparse

from tests.scenarios.kit import scenario
from wengert import Value


@scenario
def argparse_namespace_attribute_is_raised(compile):
    args, w = argparse.Namespace(lr=1.0), Value(1.0)
    f = compile(lambda x: w * x * args.lr)
    for k in range(24):
        if k in (5, 11, 21):
            args.lr += 0.5
        yield f(0.5), w


@scenario
def argparse_namespace_in_batches(compile):
    args, w = argparse.Namespace(lr=1.0), Value(1.0)
    f = compile(lambda x: w * x * args.lr)
    for k in range(24):
        if k in (5, 11, 21):
            args.lr += 0.5
        yield f.map([0.1 * i for i in range(9)])
        yield f.mean([0.1 * i for i in range(64)]), w
