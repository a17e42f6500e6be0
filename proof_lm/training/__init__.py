"""Training: config, data, optimiser, loop, checkpoints, evaluation."""

from proof_lm.training.checkpoints import State, load_checkpoint, load_newest, new_state, save_checkpoint
from proof_lm.training.config import TrainConfig, TrainingError
from proof_lm.training.data import Batch, ProofData, TextData, load_data, shifted
from proof_lm.training.evaluation import checked, held_out, prove, share
from proof_lm.training.loop import Report, train, train_step, validate
from proof_lm.training.optimiser import learning_rate, make_optimiser, parameter_groups

__all__ = [
    "Batch", "ProofData", "Report", "State", "TextData", "TrainConfig", "TrainingError", "checked", "held_out",
    "learning_rate", "load_checkpoint", "load_data", "load_newest", "make_optimiser", "new_state", "parameter_groups",
    "prove", "save_checkpoint", "share", "shifted", "train", "train_step", "validate",
]
