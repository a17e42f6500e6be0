"""The command line: python -m proof_lm train | resume | evaluate | sample."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from dataclasses import fields
from typing import NoReturn

import torch

from proof_lm.proofs import ProofError, check_proof, parse_theorem
from proof_lm.training import (
    ProofData,
    Report,
    State,
    TextData,
    TrainConfig,
    TrainingError,
    checked,
    held_out,
    load_data,
    load_newest,
    new_state,
    prove,
    share,
    train,
)
from proof_lm.training.checkpoints import checkpoints
from proof_lm.training.distributed import World, processes
from proof_lm.training.progress import Bar, CsvLog
from proof_lm.training.speed import settled

EVALUATED = 500  # theorems of each kind that end a run


class Parser(argparse.ArgumentParser):
    """A wrong option costs one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m proof_lm", description="Train ProofLM to prove theorems, and let it prove some.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    command = commands.add_parser("train", help="start a run", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for option in fields(TrainConfig):
        is_switch = isinstance(option.default, bool)
        kind = {"action": argparse.BooleanOptionalAction} if is_switch else {"type": type(option.default)}
        name = "--" + option.name.replace("_", "-")
        command.add_argument(name, default=option.default, help=option.metadata["meaning"], **kind)
    run = {"default": TrainConfig.run, "help": "the run's folder (%(default)s)"}
    command = commands.add_parser("resume", help="go on with a run that was stopped")
    command.add_argument("--run", **run)
    command = commands.add_parser("evaluate", help="count the held-out theorems that the model proves")
    command.add_argument("--run", **run)
    command.add_argument("--theorems", type=int, default=EVALUATED, help="how many of each split (%(default)s)")
    command.add_argument("--seed", type=int, default=TrainConfig.seed, help="which ones (%(default)s)")
    command = commands.add_parser("sample", help="let the model prove a theorem or continue a text")
    command.add_argument("--run", **run)
    command.add_argument("prompt", help="premises and goal, as in 'p -> q, p |- q'; for a run on text, its beginning")
    command.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token (%(default)s)")
    command.add_argument("--top-k", type=int, help="choose among the k likeliest")
    command.add_argument("--top-p", type=float, help="choose among the likeliest that reach this probability")
    command.add_argument("--seed", type=int, default=TrainConfig.seed, help="decides the draws (%(default)s)")
    command.add_argument("--tokens", type=int, default=200, help="how many tokens to continue a text by (%(default)s)")
    return parser


def train_to_the_end(state: State, world: World) -> None:
    """Train until the last step or Ctrl-C, then say what came of it or how to go on."""
    if world.is_first and not state.config.text:
        print(f"making {state.config.examples:,} theorems with their proofs", flush=True)  # takes some seconds
    data, validation = load_data(state.config), load_data(state.config, "validation")
    watchers = [CsvLog(state), Bar(state)] if world.is_first else []

    def watch(report: Report) -> None:
        for watcher in watchers:
            watcher(report)

    try:
        train(state, data, validation, world, watch, tell if world.is_first else lambda line: None)
    finally:
        for watcher in watchers:
            watcher.close()
    if not world.is_first:
        return
    if state.step < state.config.steps:
        python = min(sys.executable, os.path.relpath(sys.executable), key=len)  # it need not be on PATH
        command = shlex.join([python, "-m", "proof_lm", "resume", "--run", state.config.run])
        print(f"stopped after step {state.step}; go on with: {command}")
    elif not state.config.text:
        evaluate(state, EVALUATED, state.config.seed)


def start(options: argparse.Namespace, world: World) -> None:
    config = TrainConfig(**{option.name: getattr(options, option.name) for option in fields(TrainConfig)})
    if checkpoints(config.run):
        raise TrainingError(f"run: {config.run} holds a run already: resume it, or name another folder")
    vocab_size = TextData.vocab_size if config.text else ProofData.vocab_size
    train_to_the_end(new_state(settled(config), vocab_size), world)


def evaluate(state: State, theorems: int, seed: int) -> None:
    """Print the checked share of held-out theorems, and of theorems that need longer proofs than any trained on."""
    if state.config.text:
        raise TrainingError(f"run: {state.config.run} was trained on text; only runs on proofs can be evaluated")
    if theorems < 1:
        raise TrainingError(f"theorems: expected at least 1, got {theorems}")
    hardest, size = state.config.hardest, state.config.largest_formula
    for title, levels in {"held-out": range(1, hardest + 1), "longer": range(hardest + 1, hardest + 4)}.items():
        counts = checked(state.model, held_out("test", theorems, seed, levels=tuple(levels), largest_formula=size))
        print(f"{title} theorems proved: {share(counts):.1%}", end="")
        print("".join(f"; {proved}/{asked} of {level} line{'s' * (level > 1)}" for level, (proved, asked) in counts.items()))


def sample(state: State, options: argparse.Namespace) -> None:
    sampling = {"temperature": options.temperature, "top_k": options.top_k, "top_p": options.top_p}
    generator = torch.Generator().manual_seed(TrainConfig(seed=options.seed).seed)  # which refuses what is no seed
    if state.config.text:
        if not options.prompt:
            raise TrainingError("prompt: expected at least one byte to continue")
        ids = torch.tensor([list(options.prompt.encode())])
        tokens = state.model.generate(ids, options.tokens, generator=generator, **sampling)
        print(bytes(tokens[0].tolist()).decode(errors="replace"))
        return
    theorem = parse_theorem(options.prompt)
    (proof,) = prove(state.model, [theorem], generator=generator, **sampling)
    print(f"{theorem}\n{proof}")
    try:
        check_proof(theorem, proof)
        print("checked: every line follows")
    except ProofError as error:
        print(f"not a proof: {error}")


def tell(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 when it did what it was asked or was stopped after saving, 1 with one line when it could not."""
    options = make_parser().parse_args(arguments)
    try:
        if options.command == "train":
            with processes() as world:
                start(options, world)
        elif options.command == "resume":
            with processes() as world:
                train_to_the_end(load_newest(options.run, tell), world)
        elif options.command == "evaluate":
            evaluate(load_newest(options.run, tell), options.theorems, options.seed)
        else:
            sample(load_newest(options.run, tell), options)
    except KeyboardInterrupt:
        tell("stopped")
        return 130
    except ValueError as error:  # TrainingError, ProofError, and what the model says of its arguments
        tell(f"python -m proof_lm {options.command}: {error}")
        return 1
    except RuntimeError as error:  # torch.OutOfMemoryError is one, and a processor's has no name
        if "memory" not in str(error):
            raise
        tell(f"python -m proof_lm {options.command}: not enough memory; a smaller model or batch needs less")
        return 1
    return 0
