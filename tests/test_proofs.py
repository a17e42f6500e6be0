"""Proofs: the checker accepts what follows and nothing else; the splits share no theorem."""

import random
from itertools import islice, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proof_lm.proofs import (
    LEVELS,
    SPLITS,
    TOKENS,
    Line,
    ProofError,
    Theorem,
    check_proof,
    decode,
    encode,
    is_proof,
    parse_formula,
    parse_proof,
    parse_theorem,
    show,
    split_of,
    theorems,
    write_proof,
)
from proof_lm.proofs.formulas import ATOMS, Compound, atoms_of, rename

FORMULAS = st.recursive(
    st.sampled_from(ATOMS), lambda inner: st.builds(Compound, inner, st.sampled_from(["&", "->"]), inner), max_leaves=8
)
EXAMPLES = st.builds(
    lambda split, seed, level, size: next(theorems(split, seed, (level,), size)),
    st.sampled_from(SPLITS),
    st.integers(0, 10_000),
    st.sampled_from((*LEVELS, 5, 6, 7)),
    st.sampled_from([2, 3, 4]),
)


def true_in(formula, world):
    if isinstance(formula, str):
        return world[formula]
    left, right = true_in(formula.left, world), true_in(formula.right, world)
    return (left and right) if formula.connective == "&" else (not left or right)


def follows(theorem):
    """By truth table, which knows nothing of rules."""
    formulas = (*theorem.premises, theorem.goal)
    atoms = sorted({atom for formula in formulas for atom in atoms_of(formula)})
    worlds = (dict(zip(atoms, values, strict=True)) for values in product((False, True), repeat=len(atoms)))
    return all(true_in(theorem.goal, w) for w in worlds if all(true_in(premise, w) for premise in theorem.premises))


def second_opinion(theorem, text):
    """The same rules told another way: on text, recursively, what is known in a tuple from the premises on."""
    *rows, end = text.split("\n")
    rest = iter(rows)

    def proves(goal, known):
        if goal in known:
            return True
        words = next(rest, "").split(" ")
        places = [place for place, word in enumerate(words) if word in RULES]
        if len(places) != 1 or " ".join(words[: places[0]]) != goal:
            return False
        rule, source = words[places[0]], " ".join(words[places[0] + 1 :])
        if is_formula(source) != (rule == "from") or (source and rule != "from"):
            return False
        cut = [(bare(left), word, bare(right)) for left, word, right in cuts(source or goal)]
        match rule, cut:
            case "and", [(left, "&", right)]:
                return proves(left, known) and proves(right, known)
            case "imp", [(left, "->", right)]:
                return proves(right, (*known, left))
            case "from", [(left, "&", right)]:
                return goal in (left, right) and proves(source, known)
            case "from", [(left, "->", right)]:
                return goal == right and proves(source, known) and proves(left, known)
        return False

    return proves(show(theorem.goal), tuple(map(show, theorem.premises))) and end == "end" and next(rest, None) is None


RULES = ("from", "and", "imp")


def bare(text):
    return text[2:-2] if text.startswith("( ") else text


def cuts(text):
    """The one way to cut a formula's text at its outermost connective, none if it is an atom."""
    words, depth = text.split(" "), 0
    for place, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("&", "->"):
            yield " ".join(words[:place]), word, " ".join(words[place + 1 :])


def is_formula(text):
    try:
        return show(parse_formula(text)) == text
    except ProofError:
        return False


@given(FORMULAS)
def test_a_formula_has_one_text_and_the_text_one_formula(formula):
    assert parse_formula(show(formula)) == formula
    assert show(parse_formula(show(formula).replace(" ", ""))) == show(formula), "spaces carry no meaning"


@pytest.mark.parametrize("text", ["", "p q", "p ->", "p & q -> r", "( p )", "( p & q", "p )", "P", "1", "( p & q ) r", "->", "| p"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ProofError, match="formula"):
        parse_formula(text)


def test_a_deep_formula_is_refused_and_does_not_end_the_parser():
    with pytest.raises(ProofError, match="tokens"):
        parse_formula("( " * 5000 + "p")


@given(EXAMPLES)
def test_generated_proofs_check_and_have_as_many_lines_as_their_level_says(example):
    theorem, lines = example
    text = write_proof(lines)
    check_proof(theorem, text)
    assert parse_proof(text) == lines
    assert second_opinion(theorem, text)
    assert theorem.goal not in theorem.premises


@given(EXAMPLES)
def test_what_is_proved_is_true_in_every_world(example):
    assert follows(example[0])


@settings(max_examples=30, deadline=None)
@given(EXAMPLES, st.integers(0, 2**32))
def test_every_corruption_is_refused_unless_it_is_another_proof(example, seed):
    """All single-token changes, deletions and doublings, and swaps of lines, judged by two checkers."""
    theorem, lines = example
    text = write_proof(lines)
    tokens, rng, refused = encode(text), random.Random(seed), 0
    corrupted = {decode(tokens[:place] + tokens[place + 1 :]) for place in range(len(tokens))}
    corrupted |= {decode(tokens[: place + 1] + tokens[place:]) for place in range(len(tokens))}
    for place in range(len(tokens)):
        for token in rng.sample(range(len(TOKENS)), 12):
            corrupted.add(decode([*tokens[:place], token, *tokens[place + 1 :]]))
    rows = text.split("\n")
    for first, second in product(range(len(rows)), repeat=2):
        rows[first], rows[second] = rows[second], rows[first]
        corrupted.add("\n".join(rows))
        rows[first], rows[second] = rows[second], rows[first]
    for wrong in corrupted - {text}:
        verdict = is_proof(theorem, wrong)
        assert verdict == second_opinion(theorem, wrong), wrong
        refused += not verdict
    assert refused > 0.95 * len(corrupted)


@settings(max_examples=50)
@given(EXAMPLES, EXAMPLES)
def test_a_proof_proves_its_own_theorem_only(one, other):
    text = write_proof(one[1])
    assert is_proof(other[0], text) == second_opinion(other[0], text)


THEOREM = parse_theorem("p -> q, q -> r, p & s |- p -> ( r & s )")
PROOF = "p -> ( r & s ) imp\nr & s and\nr from q -> r\nq from p -> q\ns from p & s\nend"
FAULTS = {
    ("r from q -> r", "r from p -> r"): "line 4: the open goal is 'p -> r', the line says 'q'",
    ("r from q -> r", "r from q"): "line 3: 'r' does not follow so: 'r from q'",
    ("r from q -> r", "r from r -> q"): "line 3: 'r' does not follow so",
    ("r from q -> r", "r from q & s"): "line 3: 'r' does not follow so",
    ("r from q -> r", "r from r & q"): "line 4: the open goal is 'r & q', the line says 'q'",
    ("r from q -> r", "r from"): "line 3: expected 'goal and', 'goal imp' or 'goal from formula', found 'r from'",
    ("r from q -> r", "r and"): "line 3: 'r' does not follow so: 'r and'",
    ("r from q -> r", "r imp"): "line 3: 'r' does not follow so: 'r imp'",
    ("r from q -> r", "r since q -> r"): "line 3: expected",
    ("r from q -> r", "q from q -> r"): "line 3: the open goal is 'r', the line says 'q'",
    ("r & s and", "r & s and s"): "line 2: expected",
    ("r & s and", "r & s imp"): "line 2: 'r & s' does not follow so",
    ("p -> ( r & s ) imp\n", ""): "line 1: the open goal is 'p -> ( r & s )', the line says 'r & s'",
    ("s from p & s\n", ""): "proof: 's' is left to prove",
    ("s from p & s", "s from r & s"): "proof: 'r & s' is left to prove",
    ("r from q -> r\nq from p -> q\ns", "s from p & s\nr from q -> r\ns"): "line 3: the open goal is 'r', the line says 's'",
    ("\nend", ""): "proof: the last line must be 'end'",
    ("\nend", "\nend\nend"): "line 6: expected",
    ("\nend", "\np from p & s\nend"): "line 6: nothing is left to prove",
    ("q from p -> q", "q from p -> q ->"): "formula 'p -> q ->'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_line(fault):
    check_proof(THEOREM, PROOF)
    assert PROOF.count(fault[0]) == 1
    with pytest.raises(ProofError) as caught:
        check_proof(THEOREM, PROOF.replace(*fault))
    assert str(caught.value).startswith(FAULTS[fault])
    assert "\n" not in str(caught.value)


def test_the_converse_of_an_implication_is_no_proof():
    assert not is_proof(parse_theorem("p -> q, q |- p"), "p from p -> q\nend")


def test_an_empty_proof_proves_what_is_known_and_nothing_else():
    assert is_proof(parse_theorem("p |- p"), "end")
    assert not is_proof(parse_theorem("q |- p"), "end")
    assert not is_proof(parse_theorem("p |- p"), "")


def test_an_implication_may_be_proved_without_what_it_assumes():
    check_proof(parse_theorem("p |- q -> p"), "q -> p imp\nend")


def test_an_assumption_is_known_below_its_own_implication_only():
    theorem = parse_theorem("q |- ( p -> q ) & p")
    assert not is_proof(theorem, "( p -> q ) & p and\np -> q imp\nend")


def test_a_circle_never_closes():
    theorem = parse_theorem("p -> q, q -> p |- p")
    for turns in range(1, 6):
        assert not is_proof(theorem, "p from q -> p\nq from p -> q\n" * turns + "end")


@pytest.mark.parametrize("text", ["p", "", "p |-", "|-", "p, |- q", "p |- q |- r", "p\n\nq\n|- r"])
def test_what_is_no_theorem_is_refused(text):
    with pytest.raises(ProofError):
        parse_theorem(text)


@given(EXAMPLES)
def test_a_theorem_is_read_back_from_its_text_and_from_one_line(example):
    theorem, _ = example
    assert parse_theorem(str(theorem)) == theorem
    assert parse_theorem(f"{', '.join(map(show, theorem.premises))} |- {show(theorem.goal)}") == theorem


@given(EXAMPLES, st.randoms())
def test_disguises_of_a_theorem_are_in_the_same_split(example, rng):
    theorem, _ = example
    names = dict(zip(ATOMS, rng.sample(ATOMS, len(ATOMS)), strict=True))
    premises = [rename(premise, names) for premise in theorem.premises]
    rng.shuffle(premises)
    assert split_of(Theorem(tuple(premises), rename(theorem.goal, names))) == split_of(theorem)


def canonical(theorem):
    """The smallest text among all orders of the premises, atoms named as they come up."""
    texts = []
    for premises in permutations(theorem.premises):
        formulas = (theorem.goal, *premises)
        names = dict(zip(dict.fromkeys(atom for f in formulas for atom in atoms_of(f)), ATOMS, strict=False))
        texts.append(" ; ".join(show(rename(f, names)) for f in formulas))
    return min(texts)


def test_the_splits_share_no_theorem_under_any_renaming_or_order():
    drawn = {
        split: {canonical(theorem) for theorem, _ in islice(theorems(split, 0, (1, 2, 3)), 400)} for split in SPLITS
    }
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not drawn[one] & drawn[other]
    assert all(len(texts) > 50 for texts in drawn.values())


def test_levels_come_alike_and_a_seed_gives_the_same_theorems():
    drawn = list(islice(theorems("train", 5), 600))
    assert drawn == list(islice(theorems("train", 5), 600))
    assert drawn != list(islice(theorems("train", 6), 600))
    counts = [sum(len(lines) == level for _, lines in drawn) for level in LEVELS]
    assert min(counts) > 100


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split: expected one of train"):
        next(theorems("tests", 0))


@given(EXAMPLES)
def test_ids_give_the_text_back(example):
    text = f"{example[0]}\n{write_proof(example[1])}"
    assert decode(encode(text)) == text


def test_a_word_without_token_is_named():
    with pytest.raises(ProofError, match="'premise'"):
        encode("p premise")


def test_a_line_is_written_as_it_is_read():
    assert str(Line(parse_formula("p -> q"), "imp")) == "p -> q imp"
    assert str(Line("p", "from", parse_formula("q -> p"))) == "p from q -> p"
