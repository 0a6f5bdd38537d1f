"""GPU101 and GPU102: values that are read after the loop, or under a guard, and those that can't wait."""

from __future__ import annotations

import pytest
from fix_pairs import HEAD, assert_fix, assert_no_fix, findings, fixed, train

from gpulint.finding import Applicability

SUMS = {
    "a loss": ("total += loss.item()", "total += loss.detach()"),
    "weighted": ("total += loss.item() * len(x)", "total += loss.detach() * len(x)"),
    "weighted from the left": ("total += len(x) * loss.item()", "total += len(x) * loss.detach()"),
    "written out": ("total = total + loss.item()", "total = total + loss.detach()"),
    "moving average": ("total = 0.9 * total + 0.1 * loss.item()", "total = 0.9 * total + 0.1 * loss.detach()"),
    "float": ("total += float(loss)", "total += loss.detach()"),
    "float of item": ("total += float(loss.item())", "total += loss.detach()"),
    "float of a sum": ("total += float(loss + 1)", "total += (loss + 1).detach()"),
    "brackets": ("total += (loss / 2).item()", "total += (loss / 2).detach()"),
    "by way of the host": ("total += loss.detach().cpu().item()", "total += loss.detach()"),
    "under a condition": (
        "if len(x) > 3:\n    total += loss.item()",
        "if len(x) > 3:\n    total += loss.detach()",
    ),
    "by a name": ("value = loss.item()\ntotal += value", "value = loss.detach()\ntotal += value"),
    "a comment": ("total += loss.item()  # why", "total += loss.detach()  # why"),
}


@pytest.mark.parametrize(("before", "after"), SUMS.values(), ids=SUMS)
def test_a_sum_is_read_after_the_loop(before: str, after: str) -> None:
    assert_fix(
        train("total = 0.0", before, "return total / len(loader)"),
        train("total = 0.0", after, "total = float(total)\nreturn total / len(loader)"),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(out.argmax(1) == y).sum().item()", "(out.argmax(1) == y).sum()"),
        ("int(out.argmax(1).eq(y).sum())", "out.argmax(1).eq(y).sum()"),
        ("torch.sum(out.argmax(1) == y.data).item()", "torch.sum(out.argmax(1) == y.data)"),
    ],
)
def test_a_count_stays_an_integer(before: str, after: str) -> None:
    assert_fix(
        train("hits = 0", f"hits += {before}", "return hits"),
        train("hits = 0", f"hits += {after}", "hits = int(hits)\nreturn hits"),
    )


def test_a_number_of_unknown_type_keeps_it() -> None:
    assert_fix(
        train("worst = 0", "worst += (out.argmax(1) - y).max().item()", "return worst"),
        train(
            "worst = 0",
            "worst += (out.argmax(1) - y).max()",
            "worst = torch.as_tensor(worst).item()\nreturn worst",
        ),
    )


def test_several_sums_keep_their_order() -> None:
    assert_fix(
        train("a, b = 0.0, 0.0", "a += loss.item()\nb += out.mean().item()", "return a, b"),
        train(
            "a, b = 0.0, 0.0",
            "a += loss.detach()\nb += out.mean().detach()",
            "a = float(a)\nb = float(b)\nreturn a, b",
        ),
    )


def test_a_guard_reads_for_itself() -> None:
    inside = "total += loss.{how}\nif step % 100 == 0:\n{read}    print(total / 100)\n    total = 0.0"
    assert_fix(
        train("total = 0.0", inside.format(how="item()", read="")),
        train("total = 0.0", inside.format(how="detach()", read="    total = float(total)\n")),
    )


def test_an_epoch_loop_is_no_step_loop() -> None:
    text = HEAD + (
        "def train(model, loader, optimizer):\n"
        "    model.cuda()\n"
        "    for epoch in range(10):\n"
        "        total = 0.0\n"
        "        for x, y in loader:\n"
        "            loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))\n"
        "            optimizer.zero_grad()\n"
        "            loss.backward()\n"
        "            optimizer.step()\n"
        "            total += loss.item()\n"
        "        print(epoch, total)\n"
    )
    after = text.replace("loss.item()", "loss.detach()").replace(
        "        print", "        total = float(total)\n        print"
    )
    assert_fix(text, after)


def test_half_precision_is_summed_in_float32() -> None:
    text = train("total = 0.0\nmodel.half()", "total += loss.item()", "return total")
    assert "total += loss.detach().float()\n" in fixed(text, "GPU101")


def test_no_graph_no_detach() -> None:
    text = HEAD + (
        "@torch.no_grad()\n"
        "def evaluate(model, loader):\n"
        "    model.cuda().eval()\n"
        "    total = 0.0\n"
        "    for x, y in loader:\n"
        "        total += F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True)).item()\n"
        "    return total\n"
    )
    assert_fix(text, text.replace(".item()", "").replace("    return", "    total = float(total)\n    return"))


def test_a_sum_on_the_device_takes_the_tensor() -> None:
    before = train("hits = torch.zeros((), device=device)", "hits += (out.argmax(1) == y).sum().item()", "return hits")
    assert_fix(before, before.replace(".sum().item()", ".sum()"))


REFUSED = {
    "printed each step": ("total = 0.0", "total += loss.item()\nprint(total)", "return total"),
    "returned from the loop": (
        "total = 0.0",
        "total += loss.item()\nif len(x) < 3 and total > 9:\n    return total",
        "",
    ),
    "a closure": ("total = 0.0\ndef show():\n    print(total)", "total += loss.item()", "return total"),
    "a global": ("global total\ntotal = 0.0", "total += loss.item()", "return total"),
    "no start": ("", "total += loss.item()", ""),
    "started by a call": ("total = start()", "total += loss.item()", "return total"),
    "started in a branch": ("total = 0.0\nif device:\n    total = start()", "total += loss.item()", "return total"),
    "summed twice": ("total = 0.0", "total += loss.item()\ntotal += 1", "return total"),
    "reset each step": ("total = 0.0", "total += loss.item()\ntotal = 0.0", "return total"),
    "an attribute": ("model.total = 0.0", "model.total += loss.item()", "return model.total"),
    "an entry": ("sums = {'loss': 0.0}", "sums['loss'] += loss.item()", "return sums"),
    "rounded": ("total = 0.0", "total += round(loss.item(), 3)", "return total"),
    "a maximum": ("best = 0.0", "best = max(best, loss.item())", "return best"),
    "multiplied": ("total = 1.0", "total *= loss.item()", "return total"),
    "a NumPy factor": ("import numpy as np\ntotal = 0.0", "total += np.float64(2) * loss.item()", "return total"),
    "handled": (
        "total = 0.0",
        "try:\n    total += loss.item()\nexcept RuntimeError:\n    pass",
        "return total",
    ),
    "yielded": ("total = 0.0", "total += loss.item()\nyield total", ""),
    "changed in place": ("total = 0.0", "value = loss.item()\nloss /= 4\ntotal += value", "return total"),
    "asked for by name": ("total = 0.0", "total += loss.item()", "print(locals())"),
    "a shared list": ("xs = ys = []", "xs.append(loss.item())", "return ys"),
    "a list read each step": ("xs = []", "xs.append(loss.item())\nprint(xs[-1])", "return xs"),
    "a list handed on before": ("xs = []\nkeep = {'xs': xs}", "xs.append(loss.item())", "return keep"),
    "a list of two kinds": ("xs = []", "xs.append(loss.item())\nxs.append(1)", "return xs"),
    "printed": ("", "print(loss.item())", ""),
    "decided on": ("", "if loss.item() > 3:\n    optimizer.zero_grad()", ""),
}


@pytest.mark.parametrize(("before", "inside", "after"), REFUSED.values(), ids=REFUSED)
def test_in_doubt_there_is_no_edit(before: str, inside: str, after: str) -> None:
    text = train(before, inside, after)
    assert_no_fix(text, "GPU101")
    for finding in findings(text, "GPU101"):
        assert finding.fix is not None
        assert finding.fix.applicability is Applicability.MANUAL


def test_a_helper_of_the_step_gets_no_edit() -> None:
    text = HEAD + (
        "def norm(model):\n"
        "    total = 0.0\n"
        "    for value in [p.grad.norm() for p in model.parameters()]:\n"
        "        total += value.item()\n"
        "    return total\n\n\n"
    )
    text += train("", "print(norm(model))").removeprefix(HEAD)
    assert fixed(text, "GPU101") == text


# ---- values used now and then -----------------------------------------------------------------------


def test_a_value_moves_under_its_guard() -> None:
    before = "value = loss.item()\nif step % 10 == 0:\n    print(value)"
    after = "if step % 10 == 0:\n    value = loss.item()\n    print(value)"
    assert_fix(train("", before), train("", after))


def test_a_value_whose_tensor_is_replaced_does_not_move() -> None:
    inside = "value = loss.{how}\nloss = loss / 2\nif step % 10 == 0:\n{read}    print(value)"
    assert_fix(
        train("", inside.format(how="item()", read="")),
        train("", inside.format(how="detach()", read="    value = float(value)\n")),
    )


def test_a_value_that_is_summed_and_logged() -> None:
    inside = "value = loss.{how}\ntotal += value\nif step % 10 == 0:\n{read}    print(value)"
    assert_fix(
        train("total = 0.0", inside.format(how="item()", read=""), "return total"),
        train(
            "total = 0.0",
            inside.format(how="detach()", read="    value = float(value)\n"),
            "total = float(total)\nreturn total",
        ),
    )


# ---- lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["xs.append(loss.{})", "xs += [loss.{}]"])
def test_a_list_is_read_at_once(line: str) -> None:
    assert_fix(
        train("xs = []", line.format("item()"), "return xs"),
        train(
            "xs = []",
            line.format("detach()"),
            "xs = torch.stack(xs).tolist() if xs else []\nreturn xs",
        ),
    )


def test_a_list_over_epochs_is_read_after_them() -> None:
    text = HEAD + (
        "def train(model, loader, optimizer):\n"
        "    model.cuda()\n"
        "    losses = []\n"
        "    for epoch in range(10):\n"
        "        for x, y in loader:\n"
        "            loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))\n"
        "            optimizer.zero_grad()\n"
        "            loss.backward()\n"
        "            optimizer.step()\n"
        "            losses.append(loss.item())\n"
        "    return losses\n"
    )
    read = "    losses = torch.stack(losses).tolist() if losses else []\n    return losses"
    assert_fix(text, text.replace("loss.item()", "loss.detach()").replace("    return losses", read))


def test_tensors_are_copied_once() -> None:
    assert_fix(
        train("xs = []", "xs.append(out.argmax(1).cpu())", "return torch.cat(xs)"),
        train("xs = []", "xs.append(out.argmax(1))", "return torch.cat(xs).cpu()"),
    )


def test_arrays_are_copied_once() -> None:
    start = "import numpy as np\nxs = []"
    assert_fix(
        train(start, "xs.append(out.argmax(1).cpu().numpy())", "return np.concatenate(xs, axis=0)"),
        train(start, "xs.append(out.argmax(1))", "return torch.cat(xs, dim=0).cpu().numpy()"),
    )


@pytest.mark.parametrize(
    ("inside", "after"),
    [
        ("xs.append(out.detach().cpu())", "return torch.cat(xs)"),  # a model's outputs would fill the device
        ("xs.append(out.argmax(1).cpu())", "return xs"),
        ("xs.append(out.argmax(1).cpu())", "return torch.cat(xs), len(xs)"),
    ],
)
def test_tensors_that_stay_on_the_host(inside: str, after: str) -> None:
    assert_no_fix(train("xs = []", inside, after), "GPU102")


def test_lightning_logs_tensors() -> None:
    text = (
        "import lightning as L\n"
        "import torch.nn.functional as F\n\n\n"
        "class Net(L.LightningModule):\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        x, y = batch\n"
        "        loss = F.cross_entropy(self.net(x), y)\n"
        '        self.log("loss", loss.item())\n'
        "        return loss\n"
    )
    assert fixed(text, "GPU101") == text.replace("loss.item()", "loss.detach()")
