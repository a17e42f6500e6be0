"""Tied weights through every path that moves or replaces them; saving and loading."""

import copy
import json
import pickle
import struct
from dataclasses import asdict, replace

import pytest
import torch
from torch import nn

from proof_lm.model import ProofLM
from tests.test_model import SMALL, VARIANTS, build, draw_ids, each_variant

TIED = [config for config in VARIANTS if config.tie_embeddings]
SUFFIXES = pytest.mark.parametrize("suffix", [".pt", ".safetensors"])


def one_storage(model):
    """Tied in every sense: one parameter, one memory, seen by the model as such and by an optimiser once."""
    head, embedding = model.lm_head.weight, model.token_embedding.weight
    names = [name for name, _ in model.named_parameters()]
    return (
        head is embedding
        and head.data_ptr() == embedding.data_ptr()
        and (model.embeddings_are_tied and "lm_head.weight" not in names)
    )


def same_logits(a, b):
    tokens = draw_ids(2, 6)
    return torch.equal(a.eval()(tokens)[0], b.eval()(tokens)[0])


# Tying ----------------------------------------------------------------------------------------------


def plain_copy(model, path):
    other = build(model.config, seed=1)
    other.load_state_dict(model.state_dict())
    return other


def assigned(model, path):
    other = build(model.config, seed=1)
    copies = {name: tensor.clone() for name, tensor in model.state_dict().items()}  # no shared storage
    other.load_state_dict(copies, assign=True)
    return other


def compiled_keys(model, path):
    other = build(model.config, seed=1)
    other.load_state_dict({"_orig_mod." + name: tensor for name, tensor in model.state_dict().items()})
    return other


def compiled_blocks(model, path):
    other, renamed = build(model.config, seed=1), {}
    for name, tensor in model.state_dict().items():
        renamed[name.replace("blocks.0.", "blocks.0._orig_mod.")] = tensor.clone()
    other.load_state_dict(renamed, assign=True)
    return other


def inside_another_module(model, path):
    wrapped = nn.ModuleDict({"decoder": build(model.config, seed=1)})
    state = nn.ModuleDict({"decoder": model}).state_dict()
    wrapped.load_state_dict({name: tensor.clone() for name, tensor in state.items()}, assign=True)
    return wrapped["decoder"]


def from_meta(model, path):
    with torch.device("meta"):
        other = ProofLM(model.config)
    other.to_empty(device="cpu").load_state_dict(model.state_dict())
    return other


def from_meta_by_assigning(model, path):
    with torch.device("meta"):
        other = ProofLM(model.config)
    other.load_state_dict({name: t.clone() for name, t in model.state_dict().items()}, assign=True)
    return other


def through_file(model, path):
    model.save(path / "model.pt")
    return ProofLM.load(path / "model.pt")


def through_safetensors(model, path):
    model.save(path / "model.safetensors")
    return ProofLM.load(path / "model.safetensors")


def through_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


def deepcopied(model, path):
    return copy.deepcopy(model)


def there_and_back(model, path):
    return copy.deepcopy(model).double().float()


PATHS = [
    plain_copy,
    assigned,
    compiled_keys,
    compiled_blocks,
    inside_another_module,
    from_meta,
    from_meta_by_assigning,
    through_file,
    through_safetensors,
    through_pickle,
    deepcopied,
    there_and_back,
]


@pytest.mark.parametrize("config", TIED, ids=lambda config: config.norm)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_tied_is_one_storage_after_every_path_and_after_a_step(path, config, tmp_path):
    model = build(config)
    other = path(model, tmp_path)
    assert one_storage(model) and one_storage(other)
    assert other.token_embedding.weight.data_ptr() != model.token_embedding.weight.data_ptr()
    assert other.parameter_count == model.parameter_count and same_logits(model, other)
    optimiser = torch.optim.SGD(other.parameters(), lr=0.1)
    other(draw_ids(2, 5), draw_ids(2, 5, seed=1))[1].backward()
    optimiser.step()
    assert one_storage(other)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
def test_untied_stays_untied_and_equal(path, tmp_path):
    model = build(VARIANTS[1])
    other = path(model, tmp_path)
    assert not model.embeddings_are_tied and not other.embeddings_are_tied
    assert other.parameter_count == model.parameter_count and same_logits(model, other)


def test_equal_numbers_in_two_memories_are_not_tied():
    model = build(replace(SMALL, tie_embeddings=False))
    with torch.no_grad():
        model.lm_head.weight.copy_(model.token_embedding.weight)
    assert not model.embeddings_are_tied


def test_two_different_matrices_are_not_loaded_into_one():
    untied = build(replace(SMALL, tie_embeddings=False))
    with pytest.raises(RuntimeError, match=r"lm_head.weight: expected the tied token_embedding.weight"):
        build().load_state_dict(untied.state_dict())


def test_a_missing_or_unknown_key_is_still_an_error():
    state = build().state_dict()
    del state["final_norm.weight"]
    with pytest.raises(RuntimeError, match=r"final_norm.weight"):
        build().load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"_orig_mod|surprise"):
        build().load_state_dict(build().state_dict() | {"surprise": torch.zeros(1)})


# Files ----------------------------------------------------------------------------------------------


@SUFFIXES
@each_variant
def test_reload_changes_nothing(config, suffix, tmp_path):
    model = build(config)
    model.save(tmp_path / f"model{suffix}")
    other = ProofLM.load(tmp_path / f"model{suffix}")
    assert other.config == config and same_logits(model, other)
    assert all(parameter.requires_grad for parameter in other.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)


def test_torch_load_with_weights_only_reads_a_file_and_its_weights_load_into_a_model(tmp_path):
    model = build()
    model.save(tmp_path / "model.pt")
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    assert content["config"] == asdict(SMALL)
    other = build(seed=1)
    other.load_state_dict(content["weights"])
    assert one_storage(other) and same_logits(model, other)


def test_a_tied_matrix_is_written_once(tmp_path):
    model = build(replace(SMALL, vocab_size=2000))
    model.save(tmp_path / "model.safetensors")
    header_size = struct.unpack("<Q", (tmp_path / "model.safetensors").read_bytes()[:8])[0]
    assert (tmp_path / "model.safetensors").stat().st_size == 8 + header_size + 4 * model.parameter_count


@SUFFIXES
def test_a_file_of_context_8_loads_into_context_32_under_rope(suffix, tmp_path):
    model, path = build(replace(SMALL, context_length=8)).eval(), tmp_path / f"model{suffix}"
    model.save(path)
    longer = ProofLM.load(path, context_length=32).eval()
    assert longer.config == replace(SMALL, context_length=32)
    tokens = draw_ids(2, 32)
    assert torch.equal(longer(tokens[:, :8])[0], model(tokens[:, :8])[0])
    by_state = build(replace(SMALL, context_length=32), seed=1)
    by_state.load_state_dict(model.state_dict())
    assert torch.equal(by_state.eval()(tokens)[0], longer(tokens)[0])


@SUFFIXES
def test_learned_positions_cannot_be_stretched(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    build(VARIANTS[1]).save(path)
    with pytest.raises(ValueError, match=r"^[^\n]*position_embedding.weight[^\n]*$"):
        ProofLM.load(path, context_length=32)


def test_map_location_decides_where_weights_and_rotations_go(tmp_path):
    build().save(tmp_path / "model.pt")
    model = ProofLM.load(tmp_path / "model.pt", map_location="meta")  # a device that every machine has
    tensors = [*model.parameters(), *model.buffers()]
    assert len(tensors) > 5 and all(tensor.is_meta for tensor in tensors)


@SUFFIXES
def test_dtype_survives_and_rotations_are_float32_after_loading(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    model = build().to(torch.bfloat16)
    model.save(path)
    other = ProofLM.load(path)
    assert {parameter.dtype for parameter in other.parameters()} == {torch.bfloat16}
    assert other.rotations.dtype == torch.float32 and torch.equal(other.rotations, build().rotations)
    assert one_storage(other) and same_logits(model, other)


def test_loading_leaves_the_global_generator_alone(tmp_path):
    build().save(tmp_path / "model.pt")
    torch.manual_seed(5)
    state = torch.get_rng_state()
    ProofLM.load(tmp_path / "model.pt")
    assert torch.equal(torch.get_rng_state(), state)


def test_saving_leaves_the_model_as_it_was(tmp_path):
    model = build()
    names = list(model.state_dict())
    model.save(tmp_path / "model.pt")
    assert list(model.state_dict()) == names and "lm_head.weight" in names


class Evil:
    def __reduce__(self):
        return (eval, ("1 / 0",))


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_foreign_and_torn_files_are_refused_in_one_line(name, tmp_path):
    path = tmp_path / name
    build().save(path)
    whole = path.read_bytes()
    contents = [b"", b"not a model", whole[: len(whole) // 2], pickle.dumps(Evil(), 2), pickle.dumps([1], 2)]
    for content in contents:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"model\.\w+: torn, or not written by save \(\w+\)$"):
            ProofLM.load(path)
    torch.save({"weights": {}}, path)
    with pytest.raises(ValueError, match=r"torn, or not written by save"):
        ProofLM.load(path)


def test_a_config_that_cannot_be_is_refused_with_the_name_of_the_file(tmp_path):
    build().save(tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"model.pt: does not fit: n_heads: expected a divisor"):
        ProofLM.load(tmp_path / "model.pt", n_heads=5)
    with pytest.raises(FileNotFoundError):
        ProofLM.load(tmp_path / "absent.pt")


def test_safetensors_metadata_is_the_config_as_json(tmp_path):
    from safetensors import safe_open

    build().save(tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        assert json.loads(file.metadata()["config"]) == asdict(SMALL)
