# %% setup
import copy
import json

import numpy as np

from proof_lm.probes.resumption import Run

ARRAYS = ("weights", "first", "second")

def save_run(run):
    saved = {name: {key: value.copy() for key, value in getattr(run, name).items()} for name in ARRAYS}
    saved["config"] = dict(run.config)
    saved["step"], saved["average"] = run.step, run.average
    saved["rng"] = run.rng.bit_generator.state
    saved["data"] = {"rng": run.batches.rng.bit_generator.state, "order": run.batches.order.copy(), "position": run.batches.position}
    return saved

def restore_run(saved):
    run = Run(saved["config"])
    for name in ARRAYS:
        setattr(run, name, {key: np.array(value) for key, value in saved[name].items()})
    run.step, run.average = saved["step"], saved["average"]
    run.rng.bit_generator.state = saved["rng"]
    run.batches.rng.bit_generator.state = saved["data"]["rng"]
    run.batches.order, run.batches.position = np.array(saved["data"]["order"]), saved["data"]["position"]
    return run

# %% right: as the setup has it
pass

# %% right: JSON text in a list
def save_run(run):
    plain = {name: {key: value.tolist() for key, value in getattr(run, name).items()} for name in ARRAYS}
    plain |= {"config": run.config, "step": run.step, "average": float(run.average)}
    plain |= {"rngs": [run.rng.bit_generator.state, run.batches.rng.bit_generator.state]}
    plain |= {"order": run.batches.order.tolist(), "position": int(run.batches.position)}
    return [json.dumps(plain)]

def restore_run(saved):
    plain = json.loads(saved[0])
    run = Run(plain["config"])
    for name in ARRAYS:
        setattr(run, name, {key: np.asarray(value) for key, value in plain[name].items()})
    run.step, run.average = plain["step"], plain["average"]
    run.rng.bit_generator.state, run.batches.rng.bit_generator.state = plain["rngs"]
    run.batches.order, run.batches.position = np.asarray(plain["order"]), plain["position"]
    return run

# %% right: flat names as safetensors has them
def save_run(run):
    tensors = {f"{name}.{key}": value.copy() for name in ARRAYS for key, value in getattr(run, name).items()}
    tensors["order"] = run.batches.order.copy()
    about = {"config": run.config, "step": run.step, "average": run.average, "position": run.batches.position,
             "dropout": run.rng.bit_generator.state, "batches": run.batches.rng.bit_generator.state}
    return {"tensors": tensors, "about": json.dumps(about)}

def restore_run(saved):
    about, tensors = json.loads(saved["about"]), saved["tensors"]
    run = Run(about["config"])
    for name in ARRAYS:
        for key, value in getattr(run, name).items():
            value[...] = tensors[f"{name}.{key}"]
    run.step, run.average = about["step"], about["average"]
    run.rng.bit_generator.state = about["dropout"]
    run.batches.rng.bit_generator.state = about["batches"]
    run.batches.order[:] = tensors["order"]
    run.batches.position = about["position"]
    return run

# %% right: deep copies of vars
def save_run(run):
    keep = {key: value for key, value in vars(run).items() if key not in ("inputs", "targets", "rng", "batches")}
    keep["rng"] = run.rng.bit_generator.state
    keep["batches"] = {key: value for key, value in vars(run.batches).items() if key != "rng"}
    keep["batches"]["rng"] = run.batches.rng.bit_generator.state
    return copy.deepcopy(keep)

def restore_run(saved):
    saved = copy.deepcopy(saved)
    run = Run(saved["config"])
    generators = run.rng, run.batches.rng
    batches = saved.pop("batches")
    generators[0].bit_generator.state, generators[1].bit_generator.state = saved.pop("rng"), batches.pop("rng")
    vars(run).update(saved)
    vars(run.batches).update(batches)
    return run

# %% right: new generators and a copy of the data set too
def save_run(run):
    return {
        "config": dict(run.config), "inputs": run.inputs.copy(), "targets": run.targets.copy(),
        "step": np.int64(run.step), "average": np.float64(run.average),
        "arrays": [[key, getattr(run, name)[key].copy()] for name in ARRAYS for key in ("up", "bias", "down")],
        "states": tuple(json.dumps(rng.bit_generator.state) for rng in (run.rng, run.batches.rng)),
        "place": (run.batches.order.astype(np.int32), run.batches.position),
    }

def restore_run(saved):
    run = Run(saved["config"])
    run.inputs, run.targets = saved["inputs"].copy(), saved["targets"].copy()
    run.step, run.average = int(saved["step"]), float(saved["average"])
    values = iter(saved["arrays"])
    for name in ARRAYS:
        setattr(run, name, {key: value.copy() for key, value in (next(values) for _ in range(3))})
    rngs = []
    for text in saved["states"]:
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = json.loads(text)
        rngs.append(rng)
    run.rng, run.batches.rng = rngs
    run.batches.order, run.batches.position = saved["place"][0].astype(int), saved["place"][1]
    return run

# %% wrong: the run is rolled forward from its start
def save_run(run):
    return {"config": dict(run.config), "step": run.step}

def restore_run(saved):
    run = Run(saved["config"])
    run.train(saved["step"])
    return run

# %% wrong: weights alone
def save_run(run):
    return {"config": dict(run.config), "weights": {k: v.copy() for k, v in run.weights.items()}}

def restore_run(saved):
    run = Run(saved["config"])
    run.weights = {k: v.copy() for k, v in saved["weights"].items()}
    return run

# %% wrong: moments forgotten -> both moments are zero again
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    fresh = Run(saved["config"])
    run.first, run.second = fresh.first, fresh.second
    return run

# %% wrong: second moments forgotten -> second moments start from zero
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.second = Run(saved["config"]).second
    return run

# %% wrong: first moments in both places
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.second = {k: np.array(v) for k, v in saved["first"].items()}
    return run

# %% wrong: step forgotten -> warm-up starts anew
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.step = 0
    return run

# %% wrong: step one too far
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.step += 1
    return run

# %% wrong: average forgotten -> average of the loss starts anew
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.average = 0.0
    return run

# %% wrong: dropout seeded anew -> its seed
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.rng = np.random.default_rng([saved["config"]["seed"], 1])
    return run

# %% wrong: dropout seeded by the step
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.rng = np.random.default_rng([saved["config"]["seed"], run.step])
    return run

# %% wrong: position forgotten -> the position in it was not restored
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.batches.position = 0
    return run

# %% wrong: order not saved -> was drawn before
def save_run(run, whole=save_run):
    saved = whole(run)
    del saved["data"]["order"]
    return saved

def restore_run(saved):
    run = Run(saved["config"])
    for name in ARRAYS:
        setattr(run, name, {key: np.array(value) for key, value in saved[name].items()})
    run.step, run.average = saved["step"], saved["average"]
    run.rng.bit_generator.state = saved["rng"]
    run.batches.rng.bit_generator.state = saved["data"]["rng"]
    run.batches.position = saved["data"]["position"]
    return run

# %% wrong: order drawn again
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.batches.order = run.batches.rng.permutation(run.batches.rows)
    return run

# %% wrong: generator of the batches forgotten -> this epoch is right
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.batches.rng = np.random.default_rng(saved["config"]["seed"] + 2)
    return run

# %% wrong: batches from the start -> the data starts over
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.batches = Run(saved["config"]).batches
    return run

# %% wrong: one state for both generators -> the batches' generator got the state of dropout's
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.batches.rng.bit_generator.state = saved["rng"]
    return run

# %% wrong: half of a generator's state -> keeps half a number
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    for rng, state in ((run.rng, saved["rng"]), (run.batches.rng, saved["data"]["rng"])):
        rng.bit_generator.state = {"bit_generator": "PCG64", "state": state["state"], "has_uint32": 0, "uinteger": 0}
    return run

# %% wrong: data position found by the step
def restore_run(saved):
    run = Run(saved["config"])
    for name in ARRAYS:
        setattr(run, name, {key: np.array(value) for key, value in saved[name].items()})
    run.step, run.average = saved["step"], saved["average"]
    run.rng.bit_generator.state = saved["rng"]
    run.batches.position = run.step * run.batches.batch_size % run.batches.rows
    return run

# %% wrong: generator itself in what is saved
def save_run(run, whole=save_run):
    return whole(run) | {"rng": run.rng}

# %% wrong: the run itself in what is saved
def save_run(run):
    return {"run": copy.deepcopy(run)}

def restore_run(saved):
    return saved["run"]

# %% wrong: a variable beside it
LAST = []

def save_run(run):
    LAST.append(copy.deepcopy(run))
    return {"saved": True}

def restore_run(saved):
    return copy.deepcopy(LAST[-1])

# %% wrong: arrays shared with the run -> copy arrays
def save_run(run):
    return {
        "config": run.config, "weights": run.weights, "first": run.first, "second": run.second, "step": run.step,
        "average": run.average, "rng": run.rng.bit_generator.state,
        "data": {"rng": run.batches.rng.bit_generator.state, "order": run.batches.order, "position": run.batches.position},
    }

# %% wrong: dictionaries copied, arrays shared -> copy arrays
def save_run(run):
    return {
        "config": dict(run.config), "weights": dict(run.weights), "first": dict(run.first), "second": dict(run.second),
        "step": run.step, "average": run.average, "rng": run.rng.bit_generator.state,
        "data": {"rng": run.batches.rng.bit_generator.state, "order": run.batches.order.copy(), "position": run.batches.position},
    }

# %% wrong: restored run shares what was saved -> a restored run went on
def restore_run(saved):
    run = Run(saved["config"])
    run.weights, run.first, run.second = saved["weights"], saved["first"], saved["second"]
    run.step, run.average = saved["step"], saved["average"]
    run.rng.bit_generator.state = saved["rng"]
    run.batches.rng.bit_generator.state = saved["data"]["rng"]
    run.batches.order, run.batches.position = saved["data"]["order"], saved["data"]["position"]
    return run

# %% wrong: float32 on disk -> rounded to float32
def save_run(run, whole=save_run):
    saved = whole(run)
    for name in ARRAYS:
        saved[name] = {key: value.astype(np.float32) for key, value in saved[name].items()}
    return saved

def restore_run(saved, whole=restore_run):
    run = whole(saved)
    for name in ARRAYS:
        setattr(run, name, {key: value.astype(float) for key, value in getattr(run, name).items()})
    return run

# %% wrong: text with eight digits
def save_run(run, whole=save_run):
    saved = whole(run)
    saved["weights"] = {key: [f"{x:.8e}" for x in value.ravel()] for key, value in saved["weights"].items()}
    return saved

def restore_run(saved, whole=restore_run):
    shapes = {key: value.shape for key, value in Run(saved["config"]).weights.items()}
    weights = {key: np.array(value, dtype=float).reshape(shapes[key]) for key, value in saved["weights"].items()}
    return whole({**saved, "weights": weights})

# %% wrong: saving draws a number
def save_run(run, whole=save_run):
    run.rng.random()
    return whole(run)

# %% wrong: saving finishes the epoch
def save_run(run, whole=save_run):
    run.batches.position = run.batches.rows
    return whole(run)

# %% wrong: config of the notebook
CONFIG = {"seed": 41, "rows": 11, "width": 2, "hidden": 5, "batch_size": 3, "peak": 0.05, "warmup": 4, "dropout": 0.3}

def restore_run(saved, whole=restore_run):
    return whole({**saved, "config": CONFIG})

# %% wrong: rate kept, step lost
def save_run(run, whole=save_run):
    saved = whole(run)
    del saved["step"]
    return saved | {"rate": run.rate}

def restore_run(saved, whole=restore_run):
    return whole({**saved, "step": 0})

# %% wrong: weights rounded in the average
def save_run(run, whole=save_run):
    return whole(run) | {"average": round(run.average, 4)}

# %% wrong: pickle
def save_run(run):
    import pickle
    return pickle.dumps(run)

def restore_run(saved):
    import pickle
    return pickle.loads(saved)

# %% wrong: a dictionary instead of a run
def restore_run(saved):
    return saved

# %% wrong: order in eight bits
def save_run(run, whole=save_run):
    saved = whole(run)
    saved["data"]["order"] = run.batches.order.astype(np.uint8)
    return saved

# %% wrong: runs kept by seed
RUNS = {}

def restore_run(saved, whole=restore_run):
    if saved["config"]["seed"] not in RUNS:
        RUNS[saved["config"]["seed"]] = whole(saved)
    return RUNS[saved["config"]["seed"]]

# %% wrong: saved is used up
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    saved.clear()
    return run

# %% wrong: moments share one array
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.second["bias"] = run.first["bias"]
    return run

# %% right: batches and dropout replayed by the step
def save_run(run):
    return {"config": dict(run.config), "step": run.step, "average": run.average,
            **{name: {key: value.copy() for key, value in getattr(run, name).items()} for name in ARRAYS}}

def restore_run(saved):
    run = Run(saved["config"])
    for name in ARRAYS:
        for key, value in saved[name].items():
            getattr(run, name)[key][:] = value
    for _ in range(saved["step"]):
        picked = run.batches.next()
        run.rng.random((len(picked), run.config["hidden"]), dtype="float32")
    run.step, run.average = saved["step"], saved["average"]
    return run

# %% right: arrays as hexadecimal text
def save_run(run):
    lines = [json.dumps(run.config), str(run.step), float(run.average).hex(), str(run.batches.position)]
    lines += [json.dumps(rng.bit_generator.state) for rng in (run.rng, run.batches.rng)]
    lines += [run.batches.order.astype("<i8").tobytes().hex()]
    lines += [value.tobytes().hex() for name in ARRAYS for value in getattr(run, name).values()]
    return "\n".join(lines)

def restore_run(saved):
    config, step, average, position, dropout, shuffle, order, *arrays = saved.split("\n")
    run = Run(json.loads(config))
    run.step, run.average, run.batches.position = int(step), float.fromhex(average), int(position)
    run.rng.bit_generator.state, run.batches.rng.bit_generator.state = json.loads(dropout), json.loads(shuffle)
    run.batches.order = np.frombuffer(bytes.fromhex(order), dtype="<i8")
    places = [(getattr(run, name), key) for name in ARRAYS for key in run.weights]
    for (home, key), text in zip(places, arrays, strict=True):
        home[key] = np.frombuffer(bytearray.fromhex(text)).reshape(home[key].shape)
    return run

# %% wrong: moments swapped -> first and second are swapped
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.first, run.second = run.second, run.first
    return run

# %% wrong: generators swapped -> dropout's generator got the state of the batches'
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.rng.bit_generator.state, run.batches.rng.bit_generator.state = saved["data"]["rng"], saved["rng"]
    return run

# %% wrong: position in batches -> position counts rows and not batches
def save_run(run, whole=save_run):
    saved = whole(run)
    saved["data"]["position"] = run.batches.position // run.batches.batch_size
    return saved

# %% wrong: generators seeded with a number of their state -> a new seed
def restore_run(saved, whole=restore_run):
    run = whole(saved)
    run.rng = np.random.default_rng(saved["rng"]["state"]["state"])
    run.batches.rng = np.random.default_rng(saved["data"]["rng"]["state"]["state"])
    return run

# %% wrong: one dictionary for all that is saved -> after the run was saved again
def save_run(run, saved={}, whole=save_run):
    saved.update(whole(run))
    return saved

# %% wrong: the weights three times
def save_run(run, whole=save_run):
    saved = whole(run)
    for name in ARRAYS:
        saved[name] = {key: value.copy() for key, value in run.weights.items()}
    return saved

# %% wrong: the rest of the epoch alone
def save_run(run, whole=save_run):
    saved = whole(run)
    saved["data"]["order"], saved["data"]["position"] = run.batches.order[run.batches.position :].copy(), 0
    return saved

# %% wrong: one long vector, cut in another order
def save_run(run, whole=save_run):
    return whole(run) | {"weights": np.concatenate([value.ravel() for value in run.weights.values()])}

def restore_run(saved, whole=restore_run):
    weights, start = {}, 0
    for key, value in sorted(Run(saved["config"]).weights.items()):
        weights[key] = saved["weights"][start : start + value.size].reshape(value.shape)
        start += value.size
    return whole(saved | {"weights": weights})
