"""Short formal proofs: the language, an exact checker, a generator of theorems by level and split, a tokenizer."""

from proof_lm.proofs.checker import Line, check_proof, is_proof, parse_proof, write_proof
from proof_lm.proofs.formulas import Formula, ProofError, Theorem, parse_formula, parse_theorem, show
from proof_lm.proofs.generator import LEVELS, SPLITS, split_of, theorems
from proof_lm.proofs.tokenizer import TOKENS, decode, encode

__all__ = [
    "LEVELS", "SPLITS", "TOKENS", "Formula", "Line", "ProofError", "Theorem", "check_proof", "decode",
    "encode", "is_proof", "parse_formula", "parse_proof", "parse_theorem", "show", "split_of", "theorems", "write_proof",
]
