"""attach under torch.compile and torch.export, which the tests' import hook would disturb."""

import json
from collections.abc import Callable

import pytest

TRACED = """
import json, torch, warnings
from torch import nn
from styleshift.attaching import attach
from styleshift.twins import twin

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(2.0))
    def forward(self, features):
        return features * self.factor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.head = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Linear(8, 4)
    def forward(self, images):
        return self.head(self.block(self.block(self.stem(images))).mean((2, 3)))

def agree(body, traced, batches):
    return all(torch.allclose(traced(batch), body(batch)) for batch in batches)

def compiled(body, **settings):
    torch.compiler.reset()
    return torch.compile(body, backend="eager", **settings)

def exported(body):
    sizes = {"images": {0: torch.export.Dim.DYNAMIC}}
    return torch.export.export(body, (images,), dynamic_shapes=sizes, strict=False).module()

model, images, more, facts = Net().eval(), torch.randn(3, 3, 12, 12), torch.randn(7, 3, 12, 12), {}
with attach(model, {"block": Scale()}):
    facts["compiled"] = agree(model, compiled(model, fullgraph=True), [images, more])
    facts["exported"] = agree(model, exported(model), [images, more])
with attach(model, {"block": Scale()}, calls="first"):
    facts["exported first"] = agree(model, exported(model), [images, more])
    warnings.filterwarnings("ignore", "Dynamo does not know how to trace the builtin")
    facts["compiled first"] = agree(model, compiled(model), [images, more])
torch.compiler.reset()
torch._dynamo.config.skip_nnmodule_hook_guards = False
styled = twin(model)
attach(styled, {"block": Scale()})
bodies = (model, styled, model, styled)
facts["side by side"] = [agree(body, torch.compile(body, backend="eager"), [images]) for body in bodies]
try:
    attach(torch.compile(model), {"block": Scale()})
except TypeError as error:
    facts["attached after"] = str(error)
try:
    attach(model, {"block": torch.relu})
except TypeError as error:
    facts["no module"] = str(error)
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def traced(plain_python: Callable[[str], str]) -> dict[str, object]:
    """What a process without the import hook finds out; one process, since each one loads torch again."""
    facts: dict[str, object] = json.loads(plain_python(TRACED))
    return facts


def test_it_compiles_as_one_graph(traced: dict[str, object]) -> None:
    assert traced["compiled"] is True


def test_first_calls_are_counted_in_compiled_models_too(traced: dict[str, object]) -> None:
    assert traced["compiled first"] is True


def test_plain_and_styled_bodies_compile_side_by_side_where_hooks_are_guarded(traced: dict[str, object]) -> None:
    assert traced["side by side"] == [True] * 4


@pytest.mark.parametrize("fact", ["exported", "exported first"])
def test_it_exports_with_a_batch_of_any_size(traced: dict[str, object], fact: str) -> None:
    assert traced[fact] is True


def test_a_compiled_model_is_refused_with_advice(traced: dict[str, object]) -> None:
    assert "compile afterwards" in str(traced["attached after"])


def test_a_layer_that_is_no_module_is_refused(traced: dict[str, object]) -> None:
    assert traced["no module"] == "The layer for 'block' needs to be an nn.Module; got builtin_function_or_method."
