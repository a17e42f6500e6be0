"""Problem set P5 as a student sees it: the properties on a few small cases, and the hints.

Graders draw larger, secret cases from the same makers.
"""

from proof_lm.checks.exercises import PublicExercise
from proof_lm.checks.p5.adamw import adamw_properties
from proof_lm.checks.p5.generation import attention_properties, loop_properties
from proof_lm.checks.p5.loss import loss_properties, target_properties
from proof_lm.checks.p5.resumption import resumption_properties
from proof_lm.checks.p5.sampling import k_properties, p_properties
from proof_lm.checks.p5.schedule import schedule_properties

LOSS_HINTS = (
    (
        "labels or mask have one entry too many",
        "T tokens give T - 1 pairs of input and label. Cut the last axis, whatever stands before it: `tokens[..., 1:]`.",
    ),
    (
        "the mask keeps the wrong positions",
        "loss_mask[t] speaks of token t. Which position is asked for token t? Its entry goes there.",
    ),
    (
        "the loss is right and the gradient is not",
        "The loss is a mean over the kept positions, so its gradient is (softmax - one-hot) divided by their number,\n"
        "and zero where nothing is asked. Replace labels of hidden positions before you look anything up with them.",
    ),
)
ADAMW_HINTS = (
    (
        "the first step is too short or too long",
        "Both moments start at zero and are too small at first. Divide each by 1 - beta ** step, where step counts from 1:\n"
        "the old state's step plus one. Keep the uncorrected ones.",
    ),
    (
        "decay changes more or less than it should",
        "Decay has nothing to do with the gradient: subtract learning_rate * weight_decay * old parameter, for the names\n"
        "in `decayed` and no others.",
    ),
    (
        "an argument was changed in place",
        "`value -= ...` and `state['step'] += 1` change what the caller holds. Make new arrays and new dictionaries: a\n"
        "copy of a dictionary still holds the same arrays.",
    ),
)
SCHEDULE_HINTS = (
    (
        "step 0 is off",
        "Steps count from 0. A rate of 0 would waste the first batch, so step 0 has one part in `warmup` of the peak.",
    ),
    (
        "the last step is off",
        "The descent goes from step warmup (progress 0) to step steps - 1 (progress 1). How many steps lie between them?",
    ),
    (
        "something is divided by zero, or the rate rises again",
        "With one step left to come down the divisor is 0: take 1. Past the end progress exceeds 1: take 1.",
    ),
)
RESUMPTION_HINTS = (
    (
        "some part does not come back",
        "Go through the table of a run's state line by line. What the config decides (data set, sizes) comes back by\n"
        "Run(saved['config']); everything else must be saved and set.",
    ),
    (
        "dropout or batches differ",
        "rng.bit_generator.state is a plain dictionary; assigning it sets a generator back. There are two generators. The\n"
        "order of the epoch under way was drawn before you saved: no generator gives it again.",
    ),
    (
        "what was saved changes later",
        "The run changes its arrays in place. `dict(run.weights)` is a new dictionary with the same arrays in it: copy each\n"
        "array, when you save and again when you restore.",
    ),
)
GENERATION_HINTS = (
    (
        "one token is right, a chunk of several is not",
        "Let the cache hold S steps. New query i stands at position S + i, so it sees keys 0 to S + i: the mask is (T, S + T),\n"
        "and its diagonal starts at column S.",
    ),
    (
        "the cache is wrong or changed",
        "Concatenate the old keys and the new ones along axis -2, old ones first, into a new array. Return all of them.",
    ),
    (
        "generate reads too much, or one token is off",
        "Reading the prompt gives the logits for the first new token. After that every call reads one token, (B, 1), with\n"
        "the cache that the last call returned. With `chunk` the prompt takes several calls, cache in hand.",
    ),
)
SAMPLING_HINTS = (
    (
        "too many are left where logits are equal",
        "A threshold (logits >= the k-th largest) keeps all equals. Work with ids: np.argsort(-logits, kind='stable') lists\n"
        "them from the likeliest down, lower ids first.",
    ),
    (
        "top-p keeps one too few, or none",
        "Walk from the likeliest down. A token stays if what lies *before* it has not reached p yet: for the first one that\n"
        "is 0, so it always stays.",
    ),
    (
        "rows influence one another, or p = 1 drops something",
        "Sort, sum and compare along axis=-1; np.put_along_axis or a second argsort brings the decision back to the ids'\n"
        "places. A share may round to zero, and still p = 1 leaves all.",
    ),
)

EXERCISES = (
    PublicExercise(
        "P5.1",
        "shifted_targets, masked_loss",
        target_properties([(6,), (2, 3, 5)]) + loss_properties([((2, 4), 5), ((3,), 4)]),
        LOSS_HINTS,
    ),
    PublicExercise("P5.2", "adamw_step", adamw_properties([[(3,), (2, 4)], [(2, 2), (), (5,)]]), ADAMW_HINTS),
    PublicExercise("P5.3", "learning_rate", schedule_properties([(12, 4), (9, 3)], by_hand=True), SCHEDULE_HINTS),
    PublicExercise("P5.4", "save_run, restore_run", resumption_properties([(11, 2, 5, 3)], 12), RESUMPTION_HINTS),
    PublicExercise(
        "P5.5",
        "cached_attention, generate",
        attention_properties([(1, 2, 2, 3, 2), (2, 1, 3, 2, 3)], [((1, 2, 4, 3, 2), [1, 2, 1])], 3)
        + loop_properties([(5, 4, 2, 1, 8)], [2]),
        GENERATION_HINTS,
    ),
    PublicExercise(
        "P5.6",
        "top_k_filter, top_p_filter",
        k_properties([(7,), (2, 6)]) + p_properties([(7,), (2, 6)]),
        SAMPLING_HINTS,
    ),
)
