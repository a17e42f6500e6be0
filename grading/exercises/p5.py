"""What problem set P5 is worth, and the sizes on which it is decided: larger than the public ones."""

from grading.exercise import Exercise, parts
from proof_lm.checks.p5.adamw import adamw_properties
from proof_lm.checks.p5.generation import attention_properties, loop_properties
from proof_lm.checks.p5.loss import loss_properties, target_properties
from proof_lm.checks.p5.resumption import resumption_properties
from proof_lm.checks.p5.sampling import k_properties, p_properties
from proof_lm.checks.p5.schedule import schedule_properties

# (..., T), and (labels' shape, V)
TOKENS = ((9,), (3, 7), (2, 4, 5), (5, 33))
LOGITS = (((4, 9), 7), ((11,), 5), ((2, 3, 6), 13), ((3, 33), 4))
PARAMETERS = (
    [(4, 3), (7,)], [(5,), (2, 3), (3, 2, 4), ()], [(1, 6), (6, 1), (9,)], [(2, 2), (3,), (33,), (4, 1), ()],
)  # fmt: skip
STEPS = ((20, 6), (101, 10), (9, 5), (500, 37))  # (steps, warmup)
RUNS = ((17, 3, 5, 3), (300, 2, 7, 55))  # rows, width, hidden, batch size
ATTENTIONS = ((3, 2, 5, 4, 6), (1, 3, 9, 7, 2), (2, 1, 2, 3, 8), (2, 4, 33, 2, 3))  # B, h, T, d_h, d_v
CHUNKS = (
    ((2, 3, 7, 4, 5), [3, 1, 3]), ((1, 2, 8, 3, 2), [1, 5, 2]), ((3, 1, 6, 3, 3), [1] * 6), ((2, 2, 33, 5, 3), [20, 1, 12]),
)  # fmt: skip
MODELS, ROWS = ((13, 6, 3, 2, 12), (9, 8, 2, 1, 33), (17, 10, 1, 3, 9)), (4, 3, 1)  # V, d, h, blocks, context; B
FILTERED = ((9,), (4, 11), (2, 3, 8), (5, 33))

EXERCISES = (
    Exercise("P5.1", "shifted_targets, masked_loss", parts(
        target_properties(TOKENS) + loss_properties(LOGITS), (1.5, 1.5, 0.5, 0.5, 0.5, 2, 2, 0.5, 1, 0.5, 0.5))),
    Exercise("P5.2", "adamw_step", parts(adamw_properties(PARAMETERS), (1.5, 1.5, 2, 3, 1, 0.5, 0.5))),
    Exercise("P5.3", "learning_rate", parts(schedule_properties(STEPS), (1, 1, 1.5, 1, 0.5, 0.5, 0.5))),
    Exercise("P5.4", "save_run, restore_run", parts(
        resumption_properties(RUNS, 15), (1, 1.5, 1, 1.5, 1.5, 3, 1, 1, 0.5))),
    Exercise("P5.5", "cached_attention, generate", parts(
        attention_properties(ATTENTIONS, CHUNKS, 11) + loop_properties(MODELS, ROWS),
        (1, 1, 2, 1, 1, 0.5, 0.5, 0.5, 1.5, 1.5, 1, 1, 1, 0.5, 0.5, 0.5))),
    Exercise("P5.6", "top_k_filter, top_p_filter", parts(
        k_properties(FILTERED) + p_properties(FILTERED),
        (1.5, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 2, 0.5, 0.5, 1, 0.5, 0.5, 0.5, 0.5))),
)  # fmt: skip
