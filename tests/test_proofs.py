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
    st.sampled_from((*LEVELS, 7, 8, 9)),
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
    """The same rules told another way: on text, with each line in a tuple of boxes, citing only lines in its own."""
    *rows, end = text.split("\n")
    facts = {str(number): (show(premise), ()) for number, premise in enumerate(theorem.premises, start=1)}
    boxes, claim = (), None
    for row in rows:
        number, *words = row.split(" ")
        places = [place for place, word in enumerate(words) if word in CITED]
        if len(places) != 1 or number != str(len(facts) + 1):
            return False
        claim, rule, cites = " ".join(words[: places[0]]), words[places[0]], words[places[0] + 1 :]
        if len(cites) != CITED[rule] or not is_formula(claim):
            return False
        if any(cite not in facts or facts[cite][1] != boxes[: len(facts[cite][1])] for cite in cites):
            return False
        if rule == "imp" and cites[:1] != list(boxes[-1:]):
            return False
        if not gives(rule, [facts[cite][0] for cite in cites], claim):
            return False
        boxes = (*boxes, number) if rule == "assume" else boxes[:-1] if rule == "imp" else boxes
        facts[number] = claim, boxes
    return end == "end" and not boxes and claim == show(theorem.goal)


def gives(rule, cited, claim):
    """Whether the rule leads from the cited lines to the claim, all of it text."""
    first, *others = [f"( {fact} )" if " " in fact else fact for fact in (*cited, claim)]
    match rule:
        case "assume":
            return True
        case "left":
            return cited[0].startswith(f"{others[-1]} & ")
        case "right":
            return cited[0].endswith(f" & {others[-1]}")
        case "and":
            return claim == f"{first} & {others[0]}"
        case "mp":
            return cited[0] == f"{others[0]} -> {others[1]}"
        case "imp":
            return claim == f"{first} -> {others[0]}"


CITED = {"left": 1, "right": 1, "mp": 2, "and": 2, "assume": 0, "imp": 2}


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
    text = write_proof(theorem, lines)
    check_proof(theorem, text)
    assert parse_proof(theorem, text) == lines
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
    text = write_proof(theorem, lines)
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
    text = write_proof(*one)
    assert is_proof(other[0], text) == second_opinion(other[0], text)


THEOREM = parse_theorem("p -> q, q -> r, p & s |- p -> r")
PROOF = "4 p assume\n5 q mp 1 4\n6 r mp 2 5\n7 p -> r imp 4 6\nend"
FAULTS = {
    "5 q mp 1 4 -> 5 q mp 4 1": "line 5: mp does not apply to 'p', 'p -> q'",
    "5 q mp 1 4 -> 5 r mp 1 4": "line 5: mp gives 'q', the line says 'r'",
    "5 q mp 1 4 -> 5 q mp 1 6": "line 5: cites line 6",
    "5 q mp 1 4 -> 5 q mp 1 5": "line 5: cites line 5",
    "5 q mp 1 4 -> 5 q mp 1": "line 5: mp cites 2 line numbers",
    "5 q mp 1 4 -> 5 q mp 01 4": "line 5: mp cites 2 line numbers",
    "5 q mp 1 4 -> 5 q left 1": "line 5: left does not apply to 'p -> q'",
    "5 q mp 1 4 -> 6 q mp 1 4": "line 5: expected '5 formula rule",
    "5 q mp 1 4 -> 5 q": "line 5: expected '5 formula rule",
    "4 p assume -> 4 p left 3": "line 7: imp must close the innermost box",
    "imp 4 6 -> imp 5 6": "line 7: imp must close the innermost box",
    "\n7 p -> r imp 4 6 -> ": "proof: the box opened at line 4 is never closed",
    "imp 4 6 -> imp 4 5": "line 7: imp gives 'p -> q'",
    "\nend -> ": "proof: the last line must be 'end'",
    "\nend -> \nend\nend": "line 8: expected",
    "\nend -> \n8 r mp 2 5\nend": "line 8: cites line 5, which is not open to it",
    "\nend -> \n8 p left 3\nend": "proof: its last line is not the goal 'p -> r'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_line(fault):
    check_proof(THEOREM, PROOF)
    old, _, new = fault.partition(" -> ") if not fault.startswith("\n7") else ("\n7 p -> r imp 4 6", "", "")
    with pytest.raises(ProofError) as caught:
        check_proof(THEOREM, PROOF.replace(old, new))
    assert str(caught.value).startswith(FAULTS[fault])
    assert "\n" not in str(caught.value)


def test_the_converse_of_an_implication_is_no_proof():
    assert not is_proof(parse_theorem("p -> q, q |- p"), "3 p mp 1 2\nend")


def test_an_empty_proof_proves_nothing():
    assert not is_proof(parse_theorem("p |- p"), "end")
    assert not is_proof(parse_theorem("p |- p"), "")


def test_a_box_may_end_in_a_line_from_outside_it():
    check_proof(parse_theorem("p |- q -> p"), "2 q assume\n3 q -> p imp 2 1\nend")


@pytest.mark.parametrize("text", ["p", "", "p |-", "|-", "p, |- q", "p |- q |- r"])
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
    assert min(counts) > 60


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split: expected one of train"):
        next(theorems("tests", 0))


@given(EXAMPLES)
def test_ids_give_the_text_back(example):
    text = f"{example[0]}\n{write_proof(*example)}"
    assert decode(encode(text)) == text


def test_a_word_without_token_is_named():
    with pytest.raises(ProofError, match="'premise'"):
        encode("1 p premise")


def test_a_line_is_written_as_it_is_read():
    assert str(Line(parse_formula("p -> q"), "imp", (4, 6))) == "p -> q imp 4 6"
